#pragma once

namespace hdpsim {

/// P(Z <= z) of a standard normal Z.
[[nodiscard]] double normal_cdf(double z);
[[nodiscard]] double normal_density(double z);
/// The inverse of normal_cdf to about 1e-16 relative, for p in (0, 1): algorithm AS 241 (Wichura, 1988), PPND16.
[[nodiscard]] double normal_quantile(double p);

}  // namespace hdpsim
