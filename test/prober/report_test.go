// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// TestCause has each kind of failure called by its name.
func TestCause(t *testing.T) {
	t.Parallel()
	for want, errs := range map[string][]error{
		"answered":  {&statusError{code: http.StatusServiceUnavailable}},
		"timed out": {context.DeadlineExceeded, &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}},
		"refused":   {&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}},
		"full":      {http2.StreamError{Code: http2.ErrCodeRefusedStream}},
		"cut":       {errCut, io.EOF, io.ErrUnexpectedEOF, &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, errors.New("http2: client connection force closed via ClientConn.Close")},
		"failed":    {errors.New("x509: certificate signed by unknown authority")},
	} {
		for _, err := range errs {
			if got := cause(fmt.Errorf("asking: %w", err)); got != want {
				t.Errorf("%v: %s, want %s", err, got, want)
			}
		}
	}
}

// TestSheet has a report say all of what a prober saw.
func TestSheet(t *testing.T) {
	t.Parallel()
	got := Report{
		Asked: 240, Repeated: 1, Failed: 2, Causes: map[string]int{"refused": 1, "cut": 1}, Watches: 50, Events: 80, Latest: 30 * time.Millisecond, Resumed: 3, Took: time.Second, Failures: []string{"one", "two"},
		Rows: []Row{{"front", newConnection, "GET", 20, 1, 2, time.Millisecond, time.Second, 2 * time.Second}},
	}.String()
	const want = `240 asked in 1s, 240 a second; 1 repeated, 2 failed (cut 1, refused 1); 50 watches told of 80 events, 30ms after the write at most, and were resumed 3 times
door   way             call  asked  repeated  failed  p50  p99  worst
front  new connection  GET   20     1         2       1ms  1s   2s
one
two
`
	if got != want {
		t.Errorf("it says\n%s, want\n%s", got, want)
	}
}
