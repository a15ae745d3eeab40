// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/node/nodecerts"
)

// expired has the kubelet ask for a certificate anew, if there is a token that is still good. It can do nothing with an
// expired one: it cannot renew it, and without a bootstrap kubeconfig it does not start.
func (w *watcher) expired(ctx context.Context, client nodecerts.Report) {
	w.outside = true
	name := client.NodeName()
	text, another := hasExpired(client), makeRejoin(name)+", and "+w.Give
	if w.Rejoin != nil {
		if err := w.Rejoin(ctx); err != nil {
			w.notices.set("Expired", text+"; looking for a token: "+err.Error(), another)
			return
		}
	}
	raw, err := os.ReadFile(w.BootstrapKubeconfig)
	if errors.Is(err, fs.ErrNotExist) {
		w.notices.set("Expired", text+"; there is no bootstrap token to join with again", another)
		return
	}
	var groups []string
	if err == nil {
		groups, err = nodecerts.TryBootstrap(ctx, w.BootstrapKubeconfig)
	}
	switch {
	case errors.Is(err, nodecerts.ErrRefused):
		w.notices.set("Expired", text+"; the bootstrap token that it has is of no use: "+err.Error(), another)
		return
	case err != nil:
		w.Log.Warn("cannot try the bootstrap token", "error", err) // the API server may be down: tried again at the next look
		return
	case mayRejoin(groups, name):
		w.notices.set("Expired", text+"; its bootstrap token was made for it to join again, so it does", "")
	default:
		w.notices.set("Expired", text+"; its bootstrap token is still good, so it asks for a certificate by it; there is a Node of that name, so muster's certificate controller leaves the request to a person",
			fmt.Sprintf("find the request (`muster csr list`) and approve it (`muster csr approve`); or %s", another))
	}
	if bytes.Equal(raw, w.tried) || w.Busy != nil && w.Busy() || w.seen() {
		return
	}
	w.tried = raw
	w.restart(ctx)
}

func hasExpired(client nodecerts.Report) string {
	return fmt.Sprintf("the node's client certificate expired at %s, and a kubelet cannot renew an expired one", client.NotAfter.Format(time.RFC3339))
}

func makeRejoin(node string) string {
	return fmt.Sprintf("make a token by which it may join again (`muster token create --node-name %s --rejoin`)", node)
}

// startTime is how long a kubelet may take to look for a token when it starts. A kubelet that needs a token and finds
// none ends, and starts again.
const startTime = 10 * time.Second

// seen reports whether the kubelet that runs has found the token, or will when it starts again. It must not be
// restarted then: its request would be issued to nobody, and a node is let in once.
func (w *watcher) seen() bool {
	var stat unix.Stat_t
	if err := unix.Stat(w.BootstrapKubeconfig, &stat); err != nil {
		return false
	}
	since, runs := w.started()
	return runs && since.Add(startTime).After(time.Unix(stat.Ctim.Unix()))
}

// mayRejoin reports whether a token in these groups was made for the node to join again.
func mayRejoin(groups []string, node string) bool {
	group, err := token.Scope{Kind: token.ScopeRejoin, Value: node}.Group()
	return err == nil && slices.Contains(groups, group)
}

// inside is when the node has a certificate that is good: a token is of no more use here, from whatever source it came
// and whatever this program was doing when it was ended.
func (w *watcher) inside(ctx context.Context, client nodecerts.Report) {
	w.notices.clear("Expired")
	if w.outside {
		w.outside, w.tried = false, nil
		w.did("Rejoined", "the node's client certificate had expired, and it has joined again")
	}
	if !w.Owned || !usable(client) {
		return
	}
	switch err := os.Remove(w.BootstrapKubeconfig); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		w.Log.Error("cannot remove bootstrap token", "error", err)
	default:
		w.Log.Info("the bootstrap token is of no more use, and is removed", "file", w.BootstrapKubeconfig)
		if w.Forget != nil {
			w.Forget(ctx)
		}
	}
}
