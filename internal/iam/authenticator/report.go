// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"net/http"
	"sync"
	"time"

	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/internal/platform/lru"
)

// TrialHeader in a request says that the token is not a login but a trial on behalf of somebody else. Its outcome is
// not reported.
const TrialHeader = "Muster-Trial"

// Bounds of reports. Anybody who reaches the API server can have tokens refused by the thousand.
const (
	reportAgain    = 5 * time.Second // between two reports about one access key
	reportsASecond = 50
	reportKeys     = 4096 // access keys that are remembered
)

// reports bounds how often refusals are reported.
type reports struct {
	mu    sync.Mutex
	from  time.Time
	count int
	last  *lru.Map[string, time.Time]
}

// due reports whether a refusal is to be reported now, and counts it.
func (r *reports) due(accessKeyID string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = lru.New[string, time.Time](reportKeys)
	}
	if now.Sub(r.from) >= time.Second || now.Before(r.from) {
		r.from, r.count = now, 0
	}
	if last, ok := r.last.Get(accessKeyID); r.count >= reportsASecond || ok && now.Sub(last) < reportAgain && !now.Before(last) {
		return false
	}
	r.last.Put(accessKeyID, now)
	r.count++
	return true
}

// report tells of a token that was refused before its maker was known, if it names a session. The maker of a token that
// a mapping refuses is known, and found by a query; the maker of a bad token is known to its sender alone.
func (a *Authenticator) report(r *http.Request, token string, d Decision) {
	if a.config.Refused == nil || d.Status != http.StatusForbidden || d.Identity != nil || r.Header.Get(TrialHeader) != "" {
		return
	}
	key, session, ok := ststoken.Session(token)
	if !ok || !a.reports.due(key, a.config.Now()) {
		return
	}
	a.config.Refused(keyservice.Refused{AccessKeyID: key, SessionToken: session, Rule: d.Rule, Saw: d.Saw, Fix: d.Fix})
}
