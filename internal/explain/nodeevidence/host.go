// SPDX-License-Identifier: Apache-2.0

package nodeevidence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/redaction"
	"muster.dev/muster/internal/platform/systemd"
)

// joinPatience is how long after it has booted a node may be on its way without a cause.
const joinPatience = 3 * time.Minute

// ErrNoNode says that a host has neither a kubelet nor anything of one.
var ErrNoNode = errors.New("this host has nothing of a node: no kubelet, no kubeconfig of a kubelet, no configuration of one")

// Units are systemd's. A unit that there is not is no error.
type Units interface {
	ShowAll(ctx context.Context, names ...string) ([]systemd.Unit, error)
}

// Config says where a node's evidence is.
type Config struct {
	// Root is the directory of the node's file system; / for the host itself.
	Root string
	// Name of the node in the report, if its certificate does not name it.
	Name string
	// Now is the moment of the decision.
	Now time.Time
	// Units are nil on a host without systemd, whose kubelet logs to a file.
	Units Units
	// Journal is nil if the host has none.
	Journal Journal
	// Probes look at the network and at local sockets.
	Probes Probes
}

// reading is one look at a node.
type reading struct {
	Config
	disk  disk
	facts diagnosis.Facts
	units map[string]systemd.Unit

	kubeconfig kubeconfig
	// runs reports whether the kubelet runs, reached whether the API server was reached, certified whether the kubelet has
	// what it proves itself by.
	runs, reached, certified bool
	lines                    []Line // of the kubelet, of the last minute
	blocked                  bool   // a unit before the kubelet failed, which explains that the kubelet does not run
}

// Read gathers the facts about a node. The error is [ErrNoNode], or the context's.
func Read(ctx context.Context, cfg Config) (diagnosis.Facts, error) {
	r := &reading{Config: cfg, disk: disk{cfg.Root}, units: map[string]systemd.Unit{}}
	r.facts = diagnosis.Facts{Kind: "node", Name: cfg.Name, OnNode: true, Patience: joinPatience, Since: r.booted(), Names: map[string]string{}, Steps: map[cause.Step]time.Time{cause.Booted: {}}}
	r.readUnits(ctx)
	file, config, err := r.disk.readKubeletConfig()
	if err != nil {
		r.unseen("the kubelet's configuration", err)
	}
	r.kubeconfig, err = r.disk.readKubeconfig()
	if errors.Is(err, fs.ErrNotExist) && file == "" && r.kubeconfig.path == "" && !r.units[kubeletUnit].Exists() {
		return diagnosis.Facts{}, ErrNoNode
	}
	r.configured(file, err)
	r.readLog(ctx)
	r.judgeUnits(ctx)
	if !r.blocked {
		r.kubelet(ctx, config)
		r.runtime(ctx, config)
	}
	r.certificates()
	r.endpoint(ctx)
	r.metadata(ctx)
	r.files()
	r.conclude()
	return r.facts, ctx.Err()
}

// booted is when the host booted; zero if that cannot be read.
func (r *reading) booted() time.Time {
	raw, err := r.disk.read("/proc/uptime")
	if err != nil {
		return time.Time{}
	}
	seconds, err := strconv.ParseFloat(string(firstWord(raw)), 64)
	if err != nil || seconds < 0 || seconds > 1e10 {
		return time.Time{}
	}
	return r.Now.Add(-time.Duration(seconds * float64(time.Second))).UTC()
}

// settleTime is how long after it has booted a host may have a runtime that is not there yet, a kubelet that ends because
// of that, and a clock that nobody has set.
const settleTime = time.Minute

// settled reports whether the host has had time to start its programs.
func (r *reading) settled() bool {
	return r.facts.Since.IsZero() || r.Now.Sub(r.facts.Since) >= settleTime
}

// configured notes what the kubelet's files say.
func (r *reading) configured(config string, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.see("Kubeconfig/Missing", false, "ls /var/lib/kubelet /etc/kubernetes", "the kubelet has no kubeconfig")
	case err != nil:
		r.unseen("the kubelet's kubeconfig", err)
	case config != "":
		r.facts.Steps[cause.Configured] = time.Time{}
	}
	if r.kubeconfig.path == "" || err != nil {
		return
	}
	if unreadable := checkAuthority(r.kubeconfig.authority); unreadable != nil {
		r.see("Authority/NotPEM", true, "cat "+r.kubeconfig.path, fmt.Sprintf("the authority that %s names: %v", r.kubeconfig.path, unreadable))
	}
}

// conclude decides whether the node is as it should be, as far as it can be seen here.
func (r *reading) conclude() {
	trouble := false
	for _, e := range r.facts.Evidence {
		trouble = trouble || e.Trouble && !e.Source.Passing()
	}
	r.facts.Healthy = r.runs && r.reached && r.certified && !trouble
	r.facts.Unseen = append(r.facts.Unseen, diagnosis.Unseen{What: "what the cluster says of the node", Why: "the node's credential is not used: kubectl get node, or muster explain node with a kubeconfig, shows it"})
	if r.facts.Healthy {
		r.facts.Steps = nil // which of the later steps are done, the cluster alone knows
	}
}

// object is what evidence is about.
func (r *reading) object() string { return "node/" + r.facts.Name }

// see adds evidence of the host itself.
func (r *reading) see(code string, trouble bool, look, text string) {
	r.add(diagnosis.Evidence{Source: cause.FromHost, Code: code, Look: look, Text: text, Trouble: trouble})
}

// maxText is how much of a text is kept, in bytes.
const maxText = 2048

// add adds evidence, whose text may have secrets until then.
func (r *reading) add(e diagnosis.Evidence) {
	e.Object = r.object()
	e.Text, _ = redaction.Text(e.Text) // before it is cut: the name of a secret may be far before its end
	if len(e.Text) > maxText {         // the last words say most
		e.Text = "…" + strings.ToValidUTF8(e.Text[len(e.Text)-maxText:], "")
	}
	r.facts.Evidence = append(r.facts.Evidence, e)
}

// unseen notes what could not be read.
func (r *reading) unseen(what string, err error) {
	why, _ := redaction.Text(err.Error())
	if errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0 {
		why += ": run it with sudo"
	}
	r.facts.Unseen = append(r.facts.Unseen, diagnosis.Unseen{What: what, Why: why})
}
