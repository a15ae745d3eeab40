// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"log/slog"
	"sync"
	"time"
)

// trouble remembers whether the last thing that was asked was answered. A requester may choose names that cannot be
// answered, so one failure says little, and it is logged once a minute at most.
type trouble struct {
	now    func() time.Time
	logger *slog.Logger

	mu     sync.Mutex
	since  time.Time // of the first failure after the last success; zero if that was the last
	last   error
	logged time.Time
}

func (t *trouble) report(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	t.last = err
	switch {
	case err == nil:
		t.since = time.Time{}
		return
	case t.since.IsZero():
		t.since = now
	}
	if now.Sub(t.logged) >= time.Minute {
		t.logged = now
		t.logger.Warn("inventory source does not answer", "error", err)
	}
}

func (t *trouble) status() (age time.Duration, problem string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		return 0, ""
	}
	return t.now().Sub(t.since), t.last.Error()
}
