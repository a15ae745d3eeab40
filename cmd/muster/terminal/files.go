// SPDX-License-Identifier: Apache-2.0

package terminal

import "os"

// Exists reports whether there is something at path that can be looked at.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
