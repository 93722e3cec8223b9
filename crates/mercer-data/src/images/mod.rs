//! Folders of images: PNG and JPEG files as samples of one shape, channels first.
//!
//! `images/cat/1.png` is a sample of the class `cat` with the name `cat/1.png`; a folder without class folders has no
//! classes. Samples are in the order of their names. All files are decoded once, when the folder is opened, into bytes
//! in memory or, if there are many, in an anonymous temporary file. So every error is found with its file, and any
//! sample can be read at any time.

mod decode;
mod resize;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use mercer_run::Context;

use crate::bytes::Spool;
use crate::columns::ImageShape;
use crate::dataset::Dataset;
use crate::element::{ByteOrder, DType};
use crate::error::{DataError, Result, io_error};
use crate::format::Format;
use crate::stored::{Layout, Stored};
use decode::Pixels;

/// The most files of a folder.
const MOST_FILES: usize = 10_000_000;

/// The longest side of a resized image, in pixels.
pub const LONGEST_SIDE: usize = 8192;

/// The files of a folder of images.
#[derive(Clone, Debug)]
pub struct ImageFolder {
    place: String,
    files: Vec<PathBuf>,
    /// Relative to the folder, with `/` between folders.
    names: Vec<String>,
    /// The names of the class folders, sorted, and the class of every file.
    classes: Option<(Vec<String>, Vec<usize>)>,
    /// Files that are not images.
    n_other: usize,
}

/// The shape that images should have. What is not given is taken from the files, which must agree then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageWish {
    /// 1 or 3; from files, 3 unless all of them are grey.
    pub channels: Option<usize>,
    /// Height and width.
    pub size: Option<[usize; 2]>,
}

impl ImageFolder {
    /// Lists the files of a folder.
    ///
    /// # Errors
    /// If there are no images, a class folder has none, images lie beside class folders, or a class folder has folders.
    pub fn list(path: &Path) -> Result<Self> {
        let place = path.display().to_string();
        let top = Entries::read(path)?;
        let mut own =
            Self { place: place.clone(), files: Vec::new(), names: Vec::new(), classes: None, n_other: top.n_other };
        if top.folders.is_empty() {
            own.push_all(path, None, top.images)?;
        } else if let Some(image) = top.images.first() {
            let folder = &top.folders[0];
            let reason = format!(
                "there are images ({image}) beside folders ({folder}); use a folder of class folders, or one of images"
            );
            return Err(DataError::Refused { place, reason });
        } else {
            let mut class_of = Vec::new();
            for (class, name) in top.folders.iter().enumerate() {
                let inner = Entries::read(&path.join(name))?;
                let refused = |reason: String| DataError::Refused { place: format!("{place}/{name}"), reason };
                if let Some(folder) = inner.folders.first() {
                    return Err(refused(format!("a class folder holds images, but this one has a folder {folder}")));
                }
                if inner.images.is_empty() {
                    return Err(refused("this class folder has no PNG or JPEG images; remove it".to_owned()));
                }
                own.n_other += inner.n_other;
                own.push_all(path, Some(name), inner.images)?;
                class_of.resize(own.files.len(), class);
            }
            own.classes = Some((top.folders, class_of));
        }
        if own.files.is_empty() {
            let reason = "there are no PNG or JPEG images in this folder".to_owned();
            return Err(DataError::Refused { place, reason });
        }
        Ok(own)
    }

    fn push_all(&mut self, root: &Path, folder: Option<&str>, images: Vec<String>) -> Result<()> {
        if self.files.len().saturating_add(images.len()) > MOST_FILES {
            let reason = format!("there are more than {MOST_FILES} images");
            return Err(DataError::Refused { place: self.place.clone(), reason });
        }
        for image in images {
            let name = folder.map_or_else(|| image.clone(), |folder| format!("{folder}/{image}"));
            self.files.push(root.join(&name));
            self.names.push(name);
        }
        Ok(())
    }

    /// The names of the files, relative to the folder.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The names of the class folders.
    pub fn class_names(&self) -> Option<&[String]> {
        self.classes.as_ref().map(|(names, _)| names.as_slice())
    }

    /// A note on files that are left out.
    pub fn note(&self) -> Option<String> {
        let are = if self.n_other == 1 { "file is" } else { "files are" };
        (self.n_other > 0).then(|| format!("{}: {} {are} not PNG or JPEG, and left out", self.place, self.n_other))
    }

    /// The classes as a column of texts, in the order of the images.
    ///
    /// # Errors
    /// If there are no class folders.
    pub fn labels(&self) -> Result<Dataset> {
        let Some((names, class_of)) = &self.classes else {
            let reason = "this folder has no class folders, so it has no labels".to_owned();
            return Err(DataError::Refused { place: self.place.clone(), reason });
        };
        let codes: Vec<f64> = class_of.iter().map(|&class| class as f64).collect();
        let codes = ndarray::Array1::from_vec(codes).into_dyn();
        Ok(Dataset::from_array(&self.place, codes.view())?.with_class_names(names.clone()))
    }

    /// Decodes all images into one array of bytes, `[samples, channels, height, width]`.
    ///
    /// # Errors
    /// With the name of the file: if one does not decode, is too large, or differs in size from the first one.
    pub fn open(&self, wish: ImageWish, context: &Context) -> Result<(Dataset, ImageShape)> {
        let channels = match wish.channels {
            Some(channels) => channels,
            None => self.channels(context)?,
        };
        if channels != 1 && channels != 3 {
            let reason = format!("images have 1 or 3 channels, not {channels}");
            return Err(DataError::Refused { place: self.place.clone(), reason });
        }
        if let Some([height, width]) =
            wish.size.filter(|size| size.iter().any(|side| !(1..=LONGEST_SIDE).contains(side)))
        {
            let reason = format!("images cannot be resized to {width}×{height} pixels; a side has 1 to {LONGEST_SIDE}");
            return Err(DataError::Refused { place: self.place.clone(), reason });
        }
        let (mut spool, mut size, total) = (Spool::default(), wish.size, self.files.len());
        for (at, path) in self.files.iter().enumerate() {
            self.check(context)?;
            let pixels = decode::decode(path)?;
            let own = [pixels.height, pixels.width];
            let pixels = match (wish.size, size) {
                (Some(wanted), _) => resize::resize(pixels.with_channels(channels), wanted),
                (None, Some(first)) if first != own => {
                    let reason = format!(
                        "this image is of {}×{} pixels and {} is of {}×{}; ‹resize› gives all of them one size",
                        own[1], own[0], self.names[0], first[1], first[0]
                    );
                    return Err(DataError::Refused { place: path.display().to_string(), reason });
                }
                _ => pixels.with_channels(channels),
            };
            size.get_or_insert(own);
            spool.write_all(&planes(&pixels)).map_err(io_error(&self.place))?;
            context.report(at + 1, total, "images");
        }
        let [height, width] = size.unwrap_or_default();
        let shape = vec![total, channels, height, width];
        let layout = Layout { dtype: DType::U8, order: ByteOrder::Little, shape, fortran: false };
        let stored = Stored::new(&self.place, layout, spool.finish(&self.place)?)?;
        let set = Dataset::from_stored(&self.place, Format::Images, stored).with_row_names(self.names.clone());
        Ok((set, ImageShape { channels, height, width }))
    }

    /// The channels that show all images as they are.
    fn channels(&self, context: &Context) -> Result<usize> {
        for path in &self.files {
            self.check(context)?;
            if decode::is_colour(path)? {
                return Ok(3);
            }
        }
        Ok(1)
    }

    fn check(&self, context: &Context) -> Result<()> {
        context.check().map_err(|_| DataError::Cancelled { place: self.place.clone() })
    }
}

/// The pixels with the channels first.
fn planes(pixels: &Pixels) -> Vec<u8> {
    if pixels.channels == 1 {
        return pixels.data.clone();
    }
    (0..pixels.channels)
        .flat_map(|channel| pixels.data.iter().skip(channel).step_by(pixels.channels))
        .copied()
        .collect()
}

/// What a folder holds, each sorted by name. Hidden files are left out.
struct Entries {
    folders: Vec<String>,
    images: Vec<String>,
    n_other: usize,
}

impl Entries {
    fn read(path: &Path) -> Result<Self> {
        let place = path.display().to_string();
        let mut own = Self { folders: Vec::new(), images: Vec::new(), n_other: 0 };
        for entry in fs::read_dir(path).map_err(io_error(&place))? {
            let entry = entry.map_err(io_error(&place))?;
            let name = entry.file_name().into_string().map_err(|name| DataError::Refused {
                place: place.clone(),
                reason: format!("the name {} is not UTF-8", name.to_string_lossy()),
            })?;
            if name.starts_with('.') {
                continue;
            }
            let kind = fs::metadata(entry.path()).map_err(io_error(entry.path().display()))?;
            if kind.is_dir() {
                own.folders.push(name);
            } else if kind.is_file() && decode::is_image_name(&name) {
                own.images.push(name);
            } else {
                own.n_other += 1;
            }
            if own.images.len() + own.folders.len() > MOST_FILES {
                let reason = format!("there are more than {MOST_FILES} images");
                return Err(DataError::Refused { place, reason });
            }
        }
        own.folders.sort_unstable();
        own.images.sort_unstable();
        Ok(own)
    }
}
