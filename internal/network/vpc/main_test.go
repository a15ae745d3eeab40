// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"
)

// envRelay has the test binary be a relay instead of testing.
const envRelay = "VPC_TEST_RELAY"

func TestMain(m *testing.M) {
	if raw := os.Getenv(envRelay); raw != "" {
		time.AfterFunc(2*time.Minute, func() { os.Exit(4) }) // if the tests were killed and cannot end it
		var o other
		err := json.Unmarshal([]byte(raw), &o)
		if err == nil {
			err = o.run()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
