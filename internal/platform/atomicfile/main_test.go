// SPDX-License-Identifier: Apache-2.0

package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
)

// envFull makes the test binary write "file" where it is, which its limit has no room for; see TestNoRoom.
const envFull = "DURABLE_TEST_FULL"

func TestMain(m *testing.M) {
	if os.Getenv(envFull) != "" {
		limit := syscall.Rlimit{Cur: 4096, Max: 4096}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if err := Write("file", bytes.Repeat([]byte("new"), 4096), 0o600); !errors.Is(err, syscall.EFBIG) {
			fmt.Println("writing beyond the limit:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
