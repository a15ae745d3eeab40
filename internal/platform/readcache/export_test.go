// SPDX-License-Identifier: Apache-2.0

package readcache

import "time"

// SetPatience is for tests: before anything is written or read.
func (w *Writes) SetPatience(d time.Duration) { w.patience = d }
