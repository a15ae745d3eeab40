// SPDX-License-Identifier: Apache-2.0

package pageserver

import (
	"fmt"
	"testing"
)

// However many identities there are, connections are left for pages, and streams for the user of the command.
func TestShares(t *testing.T) {
	var s shares
	var leave []func()
	for n := range 8 {
		for range 10 {
			if undo, ok := s.take(fmt.Sprint("AROA", n)); ok {
				leave = append(leave, undo)
			}
		}
	}
	if len(leave) != 24 || s.of["AROA0"] != 6 {
		t.Errorf("%d streams, %v", len(leave), s.of)
	}
	for n := range 17 {
		if undo, ok := s.take(""); ok != (n < 16) {
			t.Errorf("stream %d of the user of the command: %v", n+1, ok)
		} else if ok {
			leave = append(leave, undo)
		}
	}
	for _, undo := range leave {
		undo()
	}
	if len(s.of) > 0 {
		t.Errorf("left are %v", s.of)
	}
}
