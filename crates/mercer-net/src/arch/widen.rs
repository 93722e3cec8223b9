//! The same network, wider or narrower.

use super::{Architecture, CnnLayer};
use crate::error::{NetError, Result};

impl Architecture {
    /// The same network with all hidden widths multiplied by a factor and rounded, at least 1: units of dense layers,
    /// channels of convolutions, and of residual networks the channels of the stem. Inputs and outputs stay.
    ///
    /// ```
    /// use mercer_net::arch::{Architecture, Mlp};
    ///
    /// let wide = Architecture::Mlp(Mlp::new(3, &[8, 5], 2)).widened(2.5)?;
    /// assert_eq!(wide, Architecture::Mlp(Mlp::new(3, &[20, 13], 2)));
    /// # Ok::<(), mercer_net::NetError>(())
    /// ```
    ///
    /// # Errors
    /// [`NetError::Setting`] for a factor that is not positive, and for a network without hidden layers.
    pub fn widened(&self, factor: f64) -> Result<Self> {
        if !(factor > 0.0 && factor.is_finite()) {
            return Err(NetError::Setting(format!("a width is multiplied by {factor}; accepted: numbers above 0")));
        }
        let mut wide = self.clone();
        let widths: Vec<&mut usize> = match &mut wide {
            Self::Mlp(mlp) => mlp.widths.iter_mut().collect(),
            Self::Cnn(cnn) => cnn.layers.iter_mut().filter_map(CnnLayer::width).collect(),
            Self::Resnet(resnet) => vec![&mut resnet.width],
            Self::Residual(residual) => vec![&mut residual.width],
            Self::TwoLayer(two_layer) => vec![&mut two_layer.width],
        };
        if widths.is_empty() {
            return Err(NetError::Setting("the network has no hidden layer whose width could change".to_owned()));
        }
        for width in widths {
            *width = ((*width as f64 * factor).round() as usize).max(1);
        }
        Ok(wide)
    }
}

impl CnnLayer {
    /// Its channels or units, if it has weights.
    fn width(&mut self) -> Option<&mut usize> {
        match self {
            Self::Conv { channels, .. } => Some(channels),
            Self::Dense { width } => Some(width),
            Self::MaxPool { .. } | Self::AveragePool { .. } | Self::GlobalAveragePool => None,
        }
    }
}
