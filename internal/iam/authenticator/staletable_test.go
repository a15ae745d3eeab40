// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"runtime"
	"testing"
)

// STS may take its time. A mapping that ends meanwhile lets nobody in any more, and one that comes to be counts.
func TestMappingsCountAsTheyAreWhenTheAnswerIsGiven(t *testing.T) {
	for _, tc := range []struct{ name, before, after, want string }{
		{"a mapping that ends", "alice", "", "403 no-entry"},
		{"a mapping that changes", "alice", "bob", "bob"},
		{"a mapping that comes to be", "", "alice", "alice"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.mapTo(t, tc.before)
			token := w.token(t, "alice", 1)
			hold := make(chan struct{})
			w.verifier.hold = hold
			answer := make(chan string, 1)
			go func() { answer <- w.user(t, token) }()
			for w.verifier.calls.Load() == 0 {
				runtime.Gosched()
			}
			w.mapTo(t, tc.after)
			close(hold)
			if got := <-answer; got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
