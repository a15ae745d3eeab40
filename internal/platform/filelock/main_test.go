// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"fmt"
	"os"
	"testing"
)

// envHold has the test binary lock the directory it is in instead of testing, and wait to be killed.
const envHold = "FILELOCK_TEST_HOLD"

func TestMain(m *testing.M) {
	if os.Getenv(envHold) != "" {
		hold()
	}
	os.Exit(m.Run())
}

// unlock keeps the lock: a file that nobody refers to is closed by the garbage collector.
var unlock func()

// hold locks until it is killed.
func hold() {
	var err error
	if unlock, err = Hold("lock", ""); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("locked")
	select {}
}
