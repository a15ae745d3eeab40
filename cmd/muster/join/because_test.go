// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/node/hostjoin"
)

// A node that is not Ready in time has its cause named by the host, and no other error has.
func TestJoinNamesTheCause(t *testing.T) {
	t.Parallel()
	looked := 0
	swap := func(context.Context) (diagnosis.Report, error) {
		looked++
		return diagnosis.Report{Verdict: diagnosis.Found, Causes: []diagnosis.Finding{{Cause: "M-NODE-55", Title: "swap is on", Sentence: "The host has swap.", Fix: "swapoff -a"}}}, nil
	}
	late := fmt.Errorf("%w after 5m", hostjoin.ErrNotReady)
	got := because(t.Context(), late, swap)
	if !errors.Is(got, hostjoin.ErrNotReady) || !strings.Contains(got.Error(), "M-NODE-55: swap is on. The host has swap.\n  fix: swapoff -a\n  more: muster node explain") {
		t.Error(got)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for name, test := range map[string]struct {
		ctx context.Context
		err error
	}{
		"another error":     {t.Context(), errors.New("no token")},
		"somebody ended it": {ended, late},
	} {
		if got := because(test.ctx, test.err, swap); !errors.Is(got, test.err) || got.Error() != test.err.Error() {
			t.Errorf("%s: %v", name, got)
		}
	}
	if looked != 1 {
		t.Errorf("looked %d times", looked)
	}
	if got := because(t.Context(), late, func(context.Context) (diagnosis.Report, error) { return diagnosis.Report{}, errors.New("no node") }); got.Error() != late.Error() {
		t.Error(got)
	}
}
