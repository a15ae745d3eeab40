// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// envFront has the test binary be a front with this configuration, in JSON, instead of testing.
const envFront = "PLANEFRONT_TEST_FRONT"

func TestMain(m *testing.M) {
	if text := os.Getenv(envFront); text != "" {
		time.AfterFunc(2*time.Minute, func() { os.Exit(4) }) // if the tests were killed and cannot end it
		config := Config{Log: slog.New(slog.DiscardHandler)}
		var given struct {
			Listen, Servers, Authority, Socket string
			Descriptors                        uint64
			Patience                           time.Duration
		}
		err := json.Unmarshal([]byte(text), &given)
		if given.Descriptors > 0 {
			err = errors.Join(err, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: given.Descriptors, Max: given.Descriptors}))
		}
		config.Listen, config.Servers, config.Authority, config.Socket = netip.MustParseAddrPort(given.Listen), given.Servers, given.Authority, given.Socket
		f, failed := New(config)
		if failed == nil && given.Patience != 0 {
			f.answerWithin = given.Patience
		}
		if err := errors.Join(err, failed, f.Run(context.Background())); err != nil { //nolint:forbidigo // there is no test in this process
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
