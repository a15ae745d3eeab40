// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/node/bootreport"
	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/node/loadedimages"
	"muster.dev/muster/internal/node/nodecerts"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/platform/host"
)

// Config says where the agent finds things. On a machine all of it is fixed; see [DefaultConfig].
type Config struct {
	// Metadata is the endpoint of the instance metadata service.
	Metadata string
	// DropInDir holds documents that are added to what the user data says.
	DropInDir string
	// BinDir holds the programs.
	BinDir string
	// LogDir takes their logs.
	LogDir string
	// DataDir is for what the agent remembers from boot to boot.
	DataDir string
	// ScriptPatience is how long a script of the user data may run, ScriptSlow how long it runs before that is
	// reported.
	ScriptPatience, ScriptSlow time.Duration
	Log                        *slog.Logger
}

// DefaultConfig is the agent's configuration on a machine.
func DefaultConfig() Config {
	return Config{
		Metadata: imds.DefaultEndpoint, DropInDir: DropInDir, BinDir: render.BinDir, LogDir: "/var/log", DataDir: "/var/lib/muster",
		ScriptPatience: scriptPatience, ScriptSlow: scriptSlow, Log: newLogger(),
	}
}

// agent is process number one of a machine.
type agent struct {
	config   Config
	log      *slog.Logger
	reaper   *reaper
	metadata *imds.Client
	facts    render.Facts
	kubelet  *program
	reports  *bootreport.File // for the host; nil in tests that have none
	signs    signs

	credential credential

	shell bool // people log in to this machine by SSH; set before anything but the agent runs

	becoming sync.Mutex
	booted   bool            // it has become a node since it was booted
	said     map[step]string // the message of each step that is in the log already

	mutex    sync.Mutex
	instance render.Instance
	heard    told            // spec is made of this
	spec     nodeconfig.Spec // complete
}

// Run makes the machine a node and returns when the context has ended and everything on the machine has been shut down.
// Process number one must not end for any lesser reason: the machine would go with it. A failure is logged and tried
// again; bad user data may be replaced by good.
func Run(ctx context.Context, config Config) error {
	if os.Getpid() != 1 {
		return errors.New("the node agent is process number one of a machine; start machines with muster up or muster create nodegroup")
	}
	a := &agent{
		config: config, log: config.Log, reaper: newReaper(), metadata: imds.NewClient(config.Metadata),
		kubelet:    &program{name: "kubelet", repeats: true, restart: make(chan struct{}, 1)},
		credential: machineCredential(), said: map[step]string{},
	}
	a.kubelet.heard = a.signs.kubelet.Line
	a.answerMounts(context.WithoutCancel(ctx))
	reaping, stopReaping := context.WithCancel(context.WithoutCancel(ctx))
	defer stopReaping()
	go a.reaper.run(reaping)

	if err := a.prepare(); err != nil {
		a.log.Error("machine cannot become a node", "error", err)
		a.report(bootreport.BootFailed, err.Error())
		<-ctx.Done()
		return err
	}
	if a.identify(ctx) {
		serveSSH(ctx, a)
		if a.configure(ctx) {
			a.work(ctx)
		}
	}
	a.shutdown(context.WithoutCancel(ctx))
	return nil
}

// prepare finds out what the machine is.
func (a *agent) prepare() (err error) {
	for _, dir := range []string{a.config.DataDir, imageDir, "/var/lib/kubelet/pki", "/etc/cni/net.d", render.PathStaticPods} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("making directory %s: %w", dir, err)
		}
	}
	if err := loadedimages.Forget(a.imagesReport()); err != nil {
		a.log.Warn("the host may take this machine for further than it is", "error", err)
	}
	if a.reports, err = bootreport.Create(filepath.Join("/", bootreport.Path)); err != nil {
		a.log.Warn("the host cannot be told what keeps this machine from becoming a node", "error", err)
	}
	if err := forgetDrills(diskRoot); err != nil {
		a.log.Warn("a drill that has ended may go on here", "error", err)
	}
	if err := sweep("", a.config); err != nil {
		a.log.Warn("a file may be left that nobody needs", "error", err)
	}
	a.facts, err = ReadFacts()
	return err
}

// pollMetadata is the time between two questions to an instance metadata service that does not answer.
const pollMetadata = 100 * time.Millisecond

// identify asks for the machine's identity, until there is an answer. Nothing else knows: a name or an address out of
// user data would be what its author likes.
func (a *agent) identify(ctx context.Context) bool {
	var said string
	return poll(ctx, pollMetadata, func() bool {
		identity, err := a.metadata.Identity(ctx)
		if err != nil {
			if err.Error() != said {
				a.log.Warn("the instance metadata service does not say who this machine is; asking again", "error", err)
				said = err.Error()
			}
			return false
		}
		a.setSelf(instance(identity))
		a.log.Info("machine boots", "id", identity.ID, "address", identity.PrivateIP.String(), "name", identity.PrivateDNSName,
			"type", identity.Type, "kernel", a.facts.Kernel, "cgroup_version", a.facts.CgroupVersion, "cpus", a.facts.CPUs,
			"memory", a.facts.MemoryBytes, "overlayfs", a.facts.OverlayFS)
		return true
	})
}

func (a *agent) setSelf(self render.Instance) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.instance = self
}

func instance(identity imds.Identity) render.Instance {
	return render.Instance{
		ID: identity.ID, Type: identity.Type, Region: identity.Region, AvailabilityZone: identity.AvailabilityZone, AvailabilityZoneID: identity.AvailabilityZoneID,
		PrivateIP: identity.PrivateIP, IPv6: identity.IPv6, PrivateDNSName: identity.PrivateDNSName, PodRange: identity.PodRange,
		Release: ami.Release(identity.ImageID),
	}
}

// work runs the machine's programs until the context ends.
func (a *agent) work(ctx context.Context) {
	if !a.inotify(ctx, host.Inotify) {
		return
	}
	go a.keep(ctx, &program{name: "containerd", args: func() []string { return []string{"--config=" + render.PathContainerdConfig} }})
	go a.rotateLogs(ctx)
	go a.servePodIdentities(ctx)
	if !a.containerdAnswers(ctx) {
		return
	}
	a.log.Info("containerd answers")
	imported, shipped, loaded := make(chan struct{}), a.newShippedImages(), a.newLoadedImages()
	go func() {
		defer close(imported)
		shipped.first(ctx)
		loaded.sync(ctx)
	}()
	if !a.joined() && !a.apiServerAnswers(ctx, a.current()) {
		return
	}
	select {
	case <-imported:
	case <-ctx.Done():
		return
	}
	go loaded.follow(ctx)
	others := shipped.others(ctx)
	if !entersService(ctx, a, others) {
		return
	}
	a.kubelet.args = func() []string {
		args := render.KubeletArgs(a.current(), a.self(), render.MachineLayout(), exists(render.PathBootstrapKubeconfig))
		showKubeletArgs(a, args)
		return args
	}
	go a.keep(ctx, a.kubelet)
	go others()
	go monitor{a}.watchRegistration(ctx)
	go a.watch(ctx)
	go answerRestarts(ctx, nodecerts.RestartRequest, a.log, func() { a.again(ctx) })
	go a.watchNode(ctx)
	if !a.joins(ctx) {
		return
	}
	a.over()
	go a.watchPodCIDR(ctx)
	routed := routeLogs(ctx, a)
	go monitor{a}.run(ctx)
	go a.keep(ctx, &program{name: "kube-proxy", args: func() []string { return []string{"--config=" + render.PathKubeProxyConfig} }})
	<-ctx.Done()
	<-routed
}

// containerdAnswers waits for containerd's socket.
func (a *agent) containerdAnswers(ctx context.Context) bool {
	return poll(ctx, 10*time.Millisecond, func() bool {
		connection, err := new(net.Dialer).DialContext(ctx, "unix", render.ContainerdSocket)
		if err != nil {
			return false
		}
		_ = connection.Close()
		return true
	})
}

// poll asks again and again until it hears yes; no means that the context has ended.
func poll(ctx context.Context, interval time.Duration, done func() bool) bool {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if done() {
			return true
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// shutdownPatience is how long everything on the machine together may take to end in good order.
const shutdownPatience = 1500 * time.Millisecond

// shutdown asks every process of the machine to end and waits a little for that. The remaining ones go with process
// number one.
func (a *agent) shutdown(ctx context.Context) {
	a.log.Info("machine shuts down")
	_ = unix.Kill(-1, unix.SIGTERM) // every process of this namespace, but not its first
	ctx, cancel := context.WithTimeout(ctx, shutdownPatience)
	defer cancel()
	poll(ctx, 20*time.Millisecond, func() bool {
		entries, err := filepath.Glob("/proc/[0-9]*")
		return err == nil && len(entries) <= 1
	})
}
