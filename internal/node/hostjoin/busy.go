// SPDX-License-Identifier: Apache-2.0

package hostjoin

// Busy reports whether a join or leave is at work on the host.
func (h *Host) Busy() bool {
	release, err := h.lock()
	if err != nil {
		return true
	}
	release()
	return false
}
