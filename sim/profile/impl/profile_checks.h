#pragma once

#include "sim/document/document.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

// What must hold between the fields of a map of a profile, once it is read from `value`; reported where it does not.

void check_provenance(const Provenance& provenance, const Value& value, Diagnostics& diagnostics);
void check_send_recv(const SendRecvRate& rate, const Value& value, Diagnostics& diagnostics);
void check_connections(const ConnectionCosts& costs, const Value& value, Diagnostics& diagnostics);
void check_attention_fit(const AttentionFit& fit, const Value& value, Diagnostics& diagnostics);
void check_gemm_fit(const GemmFit& fit, const Value& value, Diagnostics& diagnostics);
void check_transfer_curve(const TransferCurve& curve, const Value& value, Diagnostics& diagnostics);
void check_message_fit(const MessageFit& fit, const Value& value, Diagnostics& diagnostics);
void check_fits(const ProfileFits& fits, const Value& value, Diagnostics& diagnostics);
/// These also complete samples that state a rate, with the time that their work takes at it, and take short ones at the
/// sustained rate of the map, where it states one.
void check_attention(AttentionCurve& curve, const Value& value, Diagnostics& diagnostics);
void check_gemm(GemmTable& table, const Value& value, Diagnostics& diagnostics);
/// Curves that are there twice, and times and rates above the peak of the data sheet.
void check_profile(const DeviceProfile& profile, const Value& value, Diagnostics& diagnostics);

}  // namespace hdpsim
