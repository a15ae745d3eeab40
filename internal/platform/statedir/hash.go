// SPDX-License-Identifier: Apache-2.0

package statedir

import (
	"crypto/sha256"
	"encoding/hex"
)

// Hash stands for a state directory in names outside of it, where two installations with directories of their own must
// not meet: 16 hexadecimal digits.
func Hash(d Dir) string {
	sum := sha256.Sum256([]byte(d))
	return hex.EncodeToString(sum[:8])
}
