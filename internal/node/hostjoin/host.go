// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/platform/filelock"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/systemd"
)

// Units are those of systemd.
type Units interface {
	Do(ctx context.Context, verb systemd.Verb, units ...string) error
	Show(ctx context.Context, unit string) (systemd.Unit, error)
	ShowAll(ctx context.Context, units ...string) ([]systemd.Unit, error)
}

// Self is what a host joins as.
type Self struct {
	Name string
	IP   netip.Addr
	// OwnContainerd tells that containerd is to be run, too. A containerd that answers already is used as it is.
	OwnContainerd bool
}

// Config says what there is to work with.
type Config struct {
	// Root is where the host's files are; empty on a host.
	Root string
	// Programs is the directory of muster's own programs; BinDir is where those of a node go, CNIBinDir where network
	// plugins do.
	Programs, BinDir, CNIBinDir string
	// Releases of Kubernetes that Muster has programs of.
	Releases release.List
	Units    Units
	Runtime  Runtime
	// Render makes the files of a node.
	Render func(nodeconfig.Spec, Self) ([]render.File, error)
	// Validate judges what was rendered before anything on the host is changed, as a machine does that boots. Its notes
	// are told; nil: nothing judges it but the kubelet itself.
	Validate func(context.Context, nodeconfig.Spec, Self, []render.File) (notes []string, err error)
	// Run runs a program to its end and returns what it said; nil: as a child.
	Run func(ctx context.Context, program string, args ...string) (string, error)
	// Connect makes a client; nil: [Connect].
	Connect func(*rest.Config) (kubernetes.Interface, error)
	// Show is told of every step as it happens.
	Show func(Step)
	Now  func() time.Time

	// before is asked before every change of the host; tests crash there.
	before func(what string) error
}

// Host is this machine, to join and to leave.
type Host struct {
	Config
	disk disk

	mu     sync.Mutex // guards the fields below: a wait has several ends
	began  time.Time
	waited time.Duration
	waits  int // inside each other: the outermost counts
	steps  []Step

	aside sync.WaitGroup // work that is begun before it is needed
}

// New checks the configuration.
func New(c Config) (*Host, error) {
	switch {
	case c.Programs == "" || c.BinDir == "" || c.CNIBinDir == "":
		return nil, errors.New("hostjoin: Programs, BinDir and CNIBinDir are needed")
	case c.Units == nil || c.Runtime == nil || c.Render == nil:
		return nil, errors.New("hostjoin: Units, Runtime and Render are needed")
	}
	if c.Run == nil {
		c.Run = runChild
	}
	if c.Connect == nil {
		c.Connect = Connect
	}
	if c.Show == nil {
		c.Show = func(Step) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Host{Config: c, disk: disk{root: c.Root, before: c.before}}, nil
}

// The outcomes of a step.
const (
	Done    = "done"
	Waiting = "waiting"
	Warning = "warning"
)

// Step is something that happened on the way.
type Step struct {
	// At is how long after the beginning.
	At    time.Duration `json:"-"`
	Name  string        `json:"name"`
	State string        `json:"state"`
	Text  string        `json:"text"`
	// Seconds is At, for JSON.
	Seconds float64 `json:"seconds"`
}

// Report is what a join or a leave came to.
type Report struct {
	NodeName string `json:"nodeName"`
	Endpoint string `json:"endpoint"`
	Steps    []Step `json:"steps"`
	// Seconds in all, and those of them in which muster waited for nobody: neither systemd, nor the container runtime,
	// the kubelet or the API server.
	Seconds    float64 `json:"seconds"`
	OwnSeconds float64 `json:"ownSeconds"`
}

func (h *Host) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.began, h.waited, h.steps = h.Now(), 0, nil
}

func (h *Host) say(name, state, format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.Now().Sub(h.began)
	s := Step{At: at, Name: name, State: state, Text: fmt.Sprintf(format, args...), Seconds: at.Seconds()}
	h.steps = append(h.steps, s)
	h.Show(s)
}

func (h *Host) done(name, format string, args ...any) { h.say(name, Done, format, args...) }
func (h *Host) warn(name, format string, args ...any) { h.say(name, Warning, format, args...) }

// wait counts the time that something takes which somebody else does.
func (h *Host) wait(f func() error) error {
	began := h.Now()
	h.mu.Lock()
	h.waits++
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.waits--; h.waits == 0 {
			h.waited += h.Now().Sub(began)
		}
	}()
	return f()
}

func (h *Host) report(l Ledger) Report {
	h.mu.Lock()
	defer h.mu.Unlock()
	took := h.Now().Sub(h.began)
	return Report{
		NodeName: l.NodeName, Endpoint: l.Endpoint, Steps: append([]Step(nil), h.steps...),
		Seconds: took.Seconds(), OwnSeconds: (took - h.waited).Seconds(),
	}
}

// lock keeps a second join or leave away, and nobody else can hold it.
func (h *Host) lock() (func(), error) {
	release, err := filelock.Take(h.disk.at(filelock.Dir), "join")
	if errors.Is(err, filelock.ErrTaken) {
		return nil, errors.New("another muster join or leave is at work on this host: wait for it")
	}
	return release, err
}

// do asks systemd for something.
func (h *Host) do(ctx context.Context, verb systemd.Verb, units ...string) error {
	if err := h.disk.change(strings.TrimSpace(string(verb) + " " + strings.Join(units, " "))); err != nil {
		return err
	}
	return h.wait(func() error { return h.Units.Do(ctx, verb, units...) })
}

// save writes the ledger.
func (h *Host) save(l Ledger) error {
	if err := h.disk.change("write ledger"); err != nil {
		return err
	}
	if err := os.MkdirAll(h.disk.at(dataDir), 0o700); err != nil {
		return fmt.Errorf("making directory of the ledger: %w", err)
	}
	return l.save(h.Root)
}

// outputPatience is how long the output of a program that has ended, or was ended, may be kept open by what it left
// behind.
const outputPatience = time.Second

// runChild runs a program without giving it anything of what the caller knows.
func runChild(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{"HOME=/root", "LANG=C.UTF-8", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = outputPatience
	if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) { // which it says of a program that ended well
		said := strings.Join(strings.Fields(out.String()), " ")
		if len(said) > 400 {
			said = "…" + strings.ToValidUTF8(said[len(said)-400:], "")
		}
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, said)
	}
	return out.String(), nil
}
