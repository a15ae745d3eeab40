// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/systemd"
)

// Found is the cluster that discovery found.
type Found struct {
	// Endpoint is the API server's URL, CA the authorities that vouch for it, How a word about the basis of that trust.
	Endpoint string
	CA       []byte
	How      string
}

// JoinRequest is what somebody wants to join, and how.
type JoinRequest struct {
	// Endpoint is where to ask, HOST:PORT; empty if discovery knows.
	Endpoint string
	Token    token.Token
	// Pins that the cluster's authority was asked to have.
	Pins []string
	// Spec is what configuration says beside that.
	Spec     nodeconfig.Spec
	NodeName string
	// NodeIP is the one that leads to the API server, if none is given.
	NodeIP netip.Addr
	// SkipKubeProxy leaves kube-proxy to the cluster, as where it is a DaemonSet. A host that has joined so stays so.
	SkipKubeProxy bool
	// Storage prepares the host's own disks, once nothing but them stands in the way of a join; nil: there is nothing
	// to prepare.
	Storage func(ctx context.Context, say func(string)) error
	// Preflight looks at the host and says what it saw; an error ends the join.
	Preflight func(context.Context) (string, error)
	Discover  func(context.Context) (Found, error)
	Timeout   time.Duration
}

// Plan is what a join makes of a host.
type Plan struct {
	Self     Self
	Endpoint string
	// Files that are to be written, programs among them; secrets are not shown.
	Files []PlannedFile
	// Services are the units that are to run.
	Services []string

	ledger    Ledger
	artifacts []artifact // that are to be placed
	spec      nodeconfig.Spec
	ca        []byte
	joined    bool
	release   release.Release // of the programs of Kubernetes
}

// PlannedFile is a file of a plan.
type PlannedFile struct {
	Path    string `json:"path"`
	Mode    string `json:"mode,omitempty"`
	CopyOf  string `json:"copyOf,omitempty"`
	LinkTo  string `json:"linkTo,omitempty"`
	Content string `json:"content,omitempty"`
}

const unitDir = "/etc/systemd/system"

// The units of a node.
const (
	containerdUnit = "containerd.service"
	kubeletUnit    = "kubelet.service"
	kubeProxyUnit  = "kube-proxy.service"
)

// treePaths are the directories that the programs of a node fill, and nobody else does.
func treePaths() []string {
	return []string{
		"/opt/containerd", "/run/containerd", "/usr/libexec/kubernetes", "/var/lib/cni", "/var/lib/containerd", "/var/lib/kubelet",
		"/var/log/containers", "/var/log/pods",
	}
}

// ofContainerd are those of them that are not a join's business when there was a containerd before.
func ofContainerd(path string) bool {
	return slices.Contains([]string{"/opt/containerd", "/run/containerd", "/var/lib/containerd"}, path)
}

// Plan finds out what a join would make, and changes nothing.
func (h *Host) Plan(ctx context.Context, r JoinRequest) (Plan, error) {
	h.begin()
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer h.aside.Wait()
	defer cancel()
	return h.plan(ctx, r)
}

func (h *Host) plan(ctx context.Context, r JoinRequest) (Plan, error) {
	p := Plan{spec: r.Spec, Self: Self{Name: r.NodeName, IP: r.NodeIP}}
	ledger, err := ReadLedger(h.Root)
	known := err == nil
	p.joined = known && h.disk.joined(ledger.NodeName, h.Now())
	// The cluster and other servers are asked while the host is looked at. The token is sent to no server.
	discovered := soon(&h.aside, func() (Found, error) { return h.find(ctx, r, ledger, p.joined) })
	around := soon(&h.aside, func() (surroundings, error) { return h.surroundings(ctx, known) })
	if err := h.preflight(ctx, r); err != nil {
		return Plan{}, err
	}
	if err != nil && !errors.Is(err, ErrNotJoined) {
		return Plan{}, err
	}
	if known {
		if ledger.NodeName != p.Self.Name {
			return Plan{}, fmt.Errorf("this host has joined as node %s and shall now be %s: `muster leave` first", ledger.NodeName, p.Self.Name)
		}
		if r.SkipKubeProxy && !ledger.SkipKubeProxy {
			return Plan{}, errors.New("this host has joined with a kube-proxy of its own and shall now be without: `muster leave` first")
		}
	}
	found, err := await(h, discovered)
	if err != nil {
		return Plan{}, err
	}
	if found.How == "" {
		h.done("discovery", "not needed: this host is node %s of %s already", ledger.NodeName, ledger.Endpoint)
	} else {
		h.done("discovery", "API server %s; its authority is known by %s", found.Endpoint, found.How)
	}
	pins, err := PinsOf(found.CA)
	if err != nil {
		return Plan{}, err
	}
	if known && !ledger.sameCluster(pins) && !h.disk.trusts(pins) {
		return Plan{}, fmt.Errorf("this host is a node of another cluster (%s): `muster leave` first", ledger.Endpoint)
	}
	p.Endpoint, p.ca, p.ledger = found.Endpoint, found.CA, ledger
	if !known {
		p.ledger = Ledger{Began: h.Now().UTC().Truncate(time.Second), NodeName: p.Self.Name, SkipKubeProxy: r.SkipKubeProxy}
	}
	p.ledger.Asked, p.ledger.Endpoint = r.Endpoint, found.Endpoint
	if !p.joined && !r.Token.IsZero() { // a node that has a certificate uses none
		p.ledger.TokenID = r.Token.ID
	}
	add(&p.ledger.Authorities, pins...)
	if err := h.wait(func() error { return h.ask(ctx, &p, r) }); err != nil {
		return Plan{}, err
	}
	if !p.Self.IP.IsValid() {
		if p.Self.IP, err = addressTowards(ctx, found.Endpoint); err != nil {
			return Plan{}, err
		}
	}
	s, err := await(h, around)
	if err != nil {
		return Plan{}, err
	}
	return p, h.fill(ctx, &p, known, s, r)
}

// surroundings are what a host that has not joined runs already.
type surroundings struct {
	// runtime is the container runtime that answers; empty if none does.
	runtime           string
	containerd, slice systemd.Unit
}

func (h *Host) surroundings(ctx context.Context, known bool) (s surroundings, err error) {
	if known { // the ledger says what there was
		return s, nil
	}
	shown := soon(&h.aside, func() ([]systemd.Unit, error) { return h.Units.ShowAll(ctx, containerdUnit, programSlice) })
	answering, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if version, err := h.Runtime.Version(answering); err == nil {
		s.runtime = version
	}
	units, err := shown()
	if err != nil {
		return s, err
	}
	s.containerd, s.slice = units[0], units[1]
	return s, nil
}

func (h *Host) preflight(ctx context.Context, r JoinRequest) error {
	if r.Preflight == nil {
		return nil
	}
	saw, err := r.Preflight(ctx)
	if err != nil {
		return err
	}
	h.done("preflight", "%s", saw)
	return nil
}

// find finds the cluster. A host that has joined it needs no token for that: it knows, and nothing else vouches.
func (h *Host) find(ctx context.Context, r JoinRequest, l Ledger, joined bool) (Found, error) {
	asked := r.Endpoint == "" || r.Endpoint == l.Asked
	pinned := len(r.Pins) == 0 || slices.ContainsFunc(r.Pins, func(pin string) bool { return slices.Contains(l.Authorities, strings.ToLower(pin)) })
	if joined && asked && pinned {
		ca, err := os.ReadFile(h.disk.at(authority))
		if err == nil {
			return Found{Endpoint: l.Endpoint, CA: ca}, nil
		}
	}
	return r.Discover(ctx)
}

// fill decides which files are to be made, and refuses to touch anybody else's.
func (h *Host) fill(ctx context.Context, p *Plan, known bool, around surroundings, r JoinRequest) error {
	if err := h.chooseRuntime(p, known, around); err != nil {
		return err
	}
	p.spec.Join = nodeconfig.Join{NodeName: p.Self.Name}
	if !p.joined {
		p.spec.Join.Token = r.Token.Reveal()
	}
	rendered, err := h.Render(p.spec, p.Self)
	if err != nil {
		return err
	}
	if err := h.validate(ctx, p, rendered); err != nil {
		return err
	}
	wanted, err := h.programs(p.release, p.Self.OwnContainerd, p.ledger.SkipKubeProxy)
	if err != nil {
		return err
	}
	for _, file := range rendered {
		a := artifact{path: file.Path, mode: file.Mode, content: file.Content, secret: file.Path == render.PathBootstrapKubeconfig}
		if !p.Self.OwnContainerd && onlyOwnContainerd(file.Path) || p.ledger.SkipKubeProxy && onlyKubeProxy(file.Path) || a.secret && p.joined {
			continue
		}
		wanted = append(wanted, a)
		if dir, unit := filepath.Split(file.Path); dir == unitDir+"/" && strings.HasSuffix(unit, ".service") {
			add(&p.Services, unit)
		}
	}
	wanted = append(wanted, h.watchArtifact())
	add(&p.Services, watchUnit)
	return h.compare(ctx, p, wanted, known, around)
}

// validate has judged what was rendered, and tells the notes.
func (h *Host) validate(ctx context.Context, p *Plan, rendered []render.File) error {
	if h.Validate == nil {
		return nil
	}
	var notes []string
	err := h.wait(func() (err error) {
		notes, err = h.Validate(ctx, p.spec, p.Self, rendered)
		return err
	})
	for _, note := range notes {
		h.warn("config", "%s", note)
	}
	return err
}

// onlyOwnContainerd tells what is made for a containerd of the join's own.
func onlyOwnContainerd(path string) bool {
	return strings.HasPrefix(path, "/etc/containerd/") || path == unitDir+"/"+containerdUnit
}

// onlyKubeProxy tells what is made for kube-proxy.
func onlyKubeProxy(path string) bool {
	return strings.HasPrefix(path, "/etc/kubernetes/kube-proxy/") || path == "/etc/muster/environment/kube-proxy" ||
		strings.HasPrefix(path, unitDir+"/"+kubeProxyUnit)
}

// chooseRuntime takes a containerd that answers, unless it is an earlier join's.
func (h *Host) chooseRuntime(p *Plan, known bool, around surroundings) error {
	p.Self.OwnContainerd = known && p.ledger.OwnContainerd
	if known {
		return nil
	}
	if around.runtime != "" {
		h.done("runtime", "%s answers and is used as it is", around.runtime)
		return nil
	}
	if around.containerd.Exists() {
		return fmt.Errorf("there is a containerd.service (%s) that does not answer as a container runtime: start it with CRI enabled (systemctl enable --now containerd; \"cri\" must not be among disabled_plugins in /etc/containerd/config.toml), or remove it", around.containerd.FragmentPath)
	}
	p.Self.OwnContainerd, p.ledger.OwnContainerd = true, true
	return nil
}

// compare finds out which of the wanted files are to be placed, and enters all into the plan's ledger.
func (h *Host) compare(ctx context.Context, p *Plan, wanted []artifact, known bool, around surroundings) error {
	var foreign []string
	for _, a := range wanted {
		found, err := h.disk.look(a)
		if err != nil {
			return err
		}
		ours := p.ledger.lists(a.path)
		switch {
		case found == same && !ours: // it was there: it is used, and stays when the host leaves
			continue
		case found == different && !ours:
			if usable, why := h.usable(ctx, a); !usable {
				foreign = append(foreign, a.path+why)
			}
			continue
		case found != same:
			p.artifacts = append(p.artifacts, a)
		case h.disk.loosened(a):
			p.artifacts = append(p.artifacts, a)
			h.done("modes", "%s can be read or written by more than should: it is to have mode %04o again", a.path, a.mode)
		}
		add(&p.ledger.Directories, h.disk.missing(a.path)...)
		add(&p.ledger.Files, a.path)
		p.ledger.note(a.path, a.fingerprint())
		if dir, unit := filepath.Split(a.path); dir == unitDir+"/" && strings.HasSuffix(unit, ".service") {
			add(&p.ledger.Units, unit)
		}
		p.Files = append(p.Files, a.shown())
	}
	if len(foreign) > 0 {
		slices.Sort(foreign)
		return fmt.Errorf("these files are here already and are not muster's: %s: undo what made them (kubeadm reset, muster leave, the package manager), or move them away", strings.Join(foreign, ", "))
	}
	slices.SortFunc(p.Files, func(a, b PlannedFile) int { return strings.Compare(a.Path, b.Path) })
	if known {
		return nil // the rest was entered when nothing had been started yet
	}
	if !around.slice.Active() {
		add(&p.ledger.Slices, programSlice)
	}
	return h.enterTrees(p)
}

// programSlice is what the node's programs are in; see package render.
const programSlice = "runtime.slice"

// enterTrees enters what the node's programs will fill.
func (h *Host) enterTrees(p *Plan) error {
	for _, path := range treePaths() {
		if ofContainerd(path) && !p.Self.OwnContainerd {
			continue
		}
		entries, err := os.ReadDir(h.disk.at(path))
		switch {
		case errors.Is(err, os.ErrNotExist):
			add(&p.ledger.Directories, h.disk.missing(path)...)
			p.ledger.Trees = append(p.ledger.Trees, Tree{Path: path})
		case err != nil:
			return fmt.Errorf("looking at %s: %w", path, err)
		case len(entries) == 0:
			p.ledger.Trees = append(p.ledger.Trees, Tree{Path: path, Keep: true})
		case path == "/var/lib/kubelet" || path == "/var/lib/containerd":
			return fmt.Errorf("%s is not empty: something else made this host a node or ran containers on it; undo that, or move the directory away", path)
		}
	}
	if !h.disk.exists(logindConfig) {
		add(&p.ledger.Directories, h.disk.missing(logindConfig)...)
		add(&p.ledger.Files, logindConfig)
	}
	settings, err := h.disk.settings()
	if err != nil {
		return err
	}
	p.ledger.Settings = settings
	add(&p.ledger.Directories, h.disk.missing(render.PathCNIConfig)...)
	if _, err := os.Lstat(h.disk.at(render.PathCNIConfig)); errors.Is(err, os.ErrNotExist) {
		add(&p.ledger.Files, render.PathCNIConfig) // containerd writes it, from its template
	}
	return nil
}

// logindConfig is what the kubelet writes where logind runs, to be given as much time at a shutdown as it wants for its
// pods (pkg/kubelet/nodeshutdown/systemd, OverrideInhibitDelay). logind reads it again when it is next started; until
// then only programs that ask for a delay get one.
const logindConfig = "/etc/systemd/logind.conf.d/99-kubelet.conf"

// shown is what may be shown of an artifact.
func (a artifact) shown() PlannedFile {
	f := PlannedFile{Path: a.path, CopyOf: a.copyOf, LinkTo: a.linkTo}
	if a.linkTo == "" {
		f.Mode = fmt.Sprintf("%04o", a.mode)
	}
	if f.Content = string(a.content); a.secret {
		f.Content = "(not shown)"
	}
	return f
}
