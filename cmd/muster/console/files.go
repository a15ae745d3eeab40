// SPDX-License-Identifier: Apache-2.0

package console

import (
	"os"
)

func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
