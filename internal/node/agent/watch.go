// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"muster.dev/muster/internal/node/nodecerts"
)

// WatchConfig configures the watch of a node: its files, and its means to act.
type WatchConfig struct {
	// CertDir holds the kubelet's certificates, Kubeconfig says where the API server is, and Authorities is the file of
	// those that it is trusted by.
	CertDir, Kubeconfig, Authorities string
	// BootstrapKubeconfig holds a bootstrap token, if there is one. If it is Owned, and not put there to stay by the
	// node's operator, it is removed as soon as the kubelet has a certificate.
	BootstrapKubeconfig string
	Owned               bool
	// Notices is the path of the file of notices. If it is empty, no notices are written.
	Notices string
	// Interval between two looks.
	Interval time.Duration
	// NodeIP is the address that the kubelet was told to use, if it was.
	NodeIP func() netip.Addr
	// Readdress makes the kubelet use an address that the machine has in place of one that it lost, and returns it, or
	// an error that is ErrNotAssigned. Nil: it is only told.
	Readdress func(ctx context.Context, old netip.Addr) (netip.Addr, error)
	// Forget removes the token from wherever else it is when it has been removed. May be nil.
	Forget func(context.Context)
	// Give says, in a notice, how a token is given to this machine.
	Give string
	// Rejoin looks for a credential to join with again and writes BootstrapKubeconfig, if there can be one.
	Rejoin func(context.Context) error
	// Token makes a token of the machine's role, where the program that the kubeconfig names must not be started. Nil:
	// it may be.
	Token func(ctx context.Context) (string, error)
	// Restart restarts the kubelet.
	Restart func(context.Context) error
	Log     *slog.Logger

	// Busy tells that somebody else, such as muster join, is at work on the node, and sees to the kubelet. Nil: nobody
	// is.
	Busy func() bool

	started    func() (time.Time, bool) // since when the kubelet runs, if it does
	now        func() time.Time
	interfaces func() ([]net.Addr, error)
	post       func(ctx context.Context, events []event) error
}

// ErrNotAssigned is an address that the node may not have.
var ErrNotAssigned = errors.New("nobody has assigned the machine another address")

// watchInterval is how often a node is looked at, and authoritiesEvery how many looks there are to one at the cluster's
// authorities.
const (
	watchInterval    = 30 * time.Second
	authoritiesEvery = 10
)

// watcher notices what a kubelet alone does not.
type watcher struct {
	WatchConfig
	notices *notices
	outside bool   // the client certificate had expired at the last look
	tried   []byte // the bootstrap kubeconfig that the kubelet was started with last
	looks   int
	idle    int // looks until another address is asked for again
	events  eventQueue
}

func newWatcher(c WatchConfig) *watcher {
	if c.now == nil {
		c.now = time.Now
	}
	if c.started == nil {
		c.started = nodecerts.KubeletStarted
	}
	if c.interfaces == nil {
		c.interfaces = net.InterfaceAddrs
	}
	if c.Interval <= 0 {
		c.Interval = watchInterval
	}
	w := &watcher{WatchConfig: c}
	if w.post == nil {
		w.post = w.postEvents
	}
	w.events.log = c.Log
	w.notices = &notices{path: c.Notices, log: c.Log, now: c.now, open: map[string]Notice{}, began: func(n Notice) {
		w.events.add(event{Reason: reasonOf(n.Code), Text: sentence(n), Warning: true, At: n.Since})
	}}
	return w
}

// did tells that something about the node has changed, in the log and to the cluster.
func (w *watcher) did(reason, text string) {
	w.Log.Warn("something about the node has changed", "code", reason, "what", text)
	w.events.add(event{Reason: reason, Text: text, At: w.now()})
}

// Watch looks at a node until the context ends, and does what a kubelet alone does not:
//
//   - a link that a rotation of the kubelet's own left half replaced is put back; without it no kubelet starts;
//   - a client certificate that expired while the machine slept: the kubelet asks for another, if there is a token that is still good;
//   - authorities of the API server that the cluster publishes anew are taken over, along a chain of trust;
//   - another address than the kubelet was told to use is taken over, if it was assigned to the machine;
//   - that it was not, and certificates that should have been replaced, are told: once in the log and by an Event of the Node, and in the
//     file of notices for as long as they last.
func Watch(ctx context.Context, c WatchConfig) {
	w := newWatcher(c)
	ticker := time.NewTicker(w.Interval)
	defer ticker.Stop()
	for {
		w.look(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (w *watcher) look(ctx context.Context) {
	w.recover(ctx)
	reports := nodecerts.Read(w.CertDir, w.now())
	client, serving := reports[0], reports[1]
	if nodecerts.ByRole(w.Kubeconfig) { // it has no client certificate, and needs none
		defer w.events.flush(ctx, w.post)
		w.rest(ctx, serving, serving)
		return
	}
	if client.Has(nodecerts.Missing) { // not joined yet: that is not this watch's business
		return
	}
	if client.Has(nodecerts.Expired) {
		w.expired(ctx, client)
		return
	}
	defer w.events.flush(ctx, w.post)
	w.inside(ctx, client)
	w.rest(ctx, serving, reports...)
}

// rest is what every node that has joined is looked at for.
func (w *watcher) rest(ctx context.Context, serving nodecerts.Report, reports ...nodecerts.Report) {
	for _, r := range reports {
		w.tell(r)
	}
	w.address(ctx, serving)
	if w.looks++; w.looks%authoritiesEvery == 1 {
		w.authorities(ctx)
	}
}

// recover puts back links that a killed kubelet left half replaced.
func (w *watcher) recover(ctx context.Context) {
	recovered, err := nodecerts.Recover(ctx, w.CertDir)
	if err != nil {
		w.notices.set("Recover", err.Error(), "")
		return
	}
	w.notices.clear("Recover")
	if len(recovered) > 0 {
		w.did("Recovered", fmt.Sprintf("an interrupted rotation of certificates (%v) is completed, and the kubelet starts again", recovered))
		w.restart(ctx)
	}
}

func (w *watcher) restart(ctx context.Context) {
	if err := w.Restart(ctx); err != nil {
		w.notices.set("Restart", fmt.Sprintf("the kubelet is to be restarted, and cannot be: %v", err), "restart it")
		return
	}
	w.notices.clear("Restart")
}

// tell tells of certificates that should have been replaced, or cannot be used.
func (w *watcher) tell(r nodecerts.Report) {
	code := "Certificate-" + string(r.Kind)
	for _, p := range r.Problems {
		if r.Kind == nodecerts.Serving && p.Trouble == nodecerts.Missing {
			continue // kubelets ask for it after they have joined, and some are not to have one
		}
		w.notices.set(code, fmt.Sprintf("%s certificate: %s", r.Kind, p.Text), p.Fix)
		return
	}
	w.notices.clear(code)
}

// authorities takes over the authorities that the cluster publishes.
func (w *watcher) authorities(ctx context.Context) {
	changed, err := nodecerts.RefreshAuthorities(ctx, w.Kubeconfig, w.Authorities, w.now())
	if errors.Is(err, nodecerts.ErrUnreachable) { // tried again at the next look
		w.Log.Info("cannot ask whom the cluster says to trust", "error", err)
		w.looks--
		return
	}
	if err != nil {
		w.notices.set("Authorities", err.Error(), "compare "+w.Authorities+" with what the cluster's administrator says whom to trust")
		return
	}
	w.notices.clear("Authorities")
	if changed {
		w.did("AuthoritiesChanged", "the cluster's authorities have changed, and are taken over into "+w.Authorities+"; the kubelet starts again")
		w.restart(ctx)
	}
}
