// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"testing"
	"time"
)

// A program that leaves something behind which keeps its output open, as a broken plugin may, is not waited for.
func TestWhatAProgramLeavesBehindIsNotWaitedFor(t *testing.T) {
	const left = 4 * time.Second
	began := time.Now()
	said, err := runChild(t.Context(), "/bin/sh", "-c", "echo v1.2.3; sleep 4 & exit 0")
	if took := time.Since(began); err != nil || said != "v1.2.3\n" || took >= left {
		t.Errorf("said %q after %s: %v", said, took, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began = time.Now()
	_, err = runChild(ctx, "/bin/sh", "-c", "sleep 4; true")
	if took := time.Since(began); err == nil || took >= left {
		t.Errorf("ended after %s: %v", took, err)
	}
}
