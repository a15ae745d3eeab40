// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/node/configsource"
	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/systemd"
)

// The phases of [Init], by the names that its flag has for them.
const (
	PhaseConfig = "config"
	PhaseRun    = "run"
)

// InitConfig is what a person at a machine asks for.
type InitConfig struct {
	// Sources are where the machine's configuration is, as package configsource names them.
	Sources []string
	// Skip names phases that are left out: config writes files, run starts what reads them.
	Skip []string
	// Metadata is the endpoint of the instance metadata service.
	Metadata  string
	DropInDir string
	Stdin     io.Reader
	// Root is put before the paths that tell what this machine is; it is empty but in tests.
	Root string
	// Write writes the machine's files, Restart starts or restarts its programs.
	Write   func(spec nodeconfig.Spec, instance render.Instance, layout render.Layout, say func(string)) error
	Restart func(ctx context.Context, layout render.Layout) error
	// Forget removes the bootstrap token when the kubelet has a certificate, and reports whether it has; see [ForgetBootstrap].
	Forget func(ctx context.Context) (bool, error)
	Say    func(string)
}

// Init makes a machine a node, or makes it another, by hand: what the agent does of its own accord when a machine boots. On a machine
// that has an agent, what was not in its user data is left to it in a drop-in, and the agent goes on from there.
func Init(ctx context.Context, c InitConfig) error {
	for _, phase := range c.Skip {
		if phase != PhaseConfig && phase != PhaseRun {
			return fmt.Errorf("there is no phase %q to skip; there are %s and %s", phase, PhaseConfig, PhaseRun)
		}
	}
	layout := render.MachineLayout()
	if systemd.Booted(c.Root) {
		layout = render.HostLayout()
	}
	if !slices.Contains(c.Skip, PhaseConfig) {
		if err := c.configure(ctx, layout); err != nil {
			return err
		}
	}
	if slices.Contains(c.Skip, PhaseRun) {
		return nil
	}
	if err := c.Restart(ctx, layout); err != nil {
		return err
	}
	c.Say("the kubelet has been started with it")
	if !layout.Systemd || c.Forget == nil { // the agent does so itself
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, forgetPatience)
	defer cancel()
	forgotten, err := c.Forget(waiting)
	if err == nil && !forgotten {
		c.Say("it has no certificate yet, so the bootstrap token is still in " + render.PathBootstrapKubeconfig + ": run this again when it has, and the token is removed")
	}
	return err
}

// forgetPatience is how long a kubelet may take to get its first certificate before it is left alone with its token.
const forgetPatience = time.Minute

// credential is that of the machine, below the root of a test.
func (c InitConfig) credential() credential {
	own := machineCredential()
	return credential{dir: filepath.Join(c.Root, own.dir), kubeconfig: filepath.Join(c.Root, own.kubeconfig)}
}

func (c InitConfig) configure(ctx context.Context, layout render.Layout) error {
	client := imds.NewClient(c.Metadata)
	found, err := configsource.Load(ctx, c.Sources, configsource.Readers{
		Stdin: c.Stdin,
		UserData: func(ctx context.Context) ([]byte, error) {
			raw, err := imds.FetchUserData(ctx, c.Metadata)
			if errors.Is(err, imds.ErrNotFound) {
				return nil, nil
			}
			return raw, err
		},
	})
	if err != nil {
		return err
	}
	for _, doubt := range found.Doubts {
		c.Say(doubt)
	}
	merged, err := nodeconfig.Read(found.Documents, false)
	if err != nil {
		return err
	}
	if spec := merged.Spec; !layout.Systemd && slices.ContainsFunc(c.Sources, c.foreign) {
		if problems := spec.Validate(); len(problems) > 0 {
			return fmt.Errorf("NodeConfig: %w", problems.ToAggregate())
		}
		raw, err := nodeconfig.Marshal(spec)
		if err != nil {
			return err
		}
		path := filepath.Join(c.DropInDir, initDropIn)
		if err := os.MkdirAll(c.DropInDir, 0o755); err != nil { //nolint:gosec // G301: as on EKS; what is secret in there is closed
			return fmt.Errorf("making directory: %w", err)
		}
		c.Say("the agent of this machine will read it from " + path)
		return atomicfile.Write(path, raw, 0o600)
	}
	identity, err := client.Identity(ctx)
	if err != nil {
		return fmt.Errorf("%w; a host that has no instance metadata service becomes a node by muster join", err)
	}
	self := instance(identity)
	joined, err := c.credential().regain(render.NodeName(merged.Spec, self), time.Now(), c.Say)
	if err != nil {
		return err
	}
	spec, err := c.credential().prove(ctx, merged.Spec, joined, client, time.Now(), c.Say)
	if err != nil {
		return err
	}
	spec, err = settle(ctx, spec, joined, c.Say)
	if err != nil {
		return err
	}
	if !joined {
		if err := PrepareDisks(ctx, spec.Instance.LocalStorage, layout.Systemd, c.Root, c.Say); err != nil {
			return err
		}
	}
	if err := c.Write(spec, self, layout, c.Say); err != nil {
		return err
	}
	c.Say("the files of " + identity.PrivateDNSName + " are written")
	return nil
}

// foreign reports whether a source is one that the agent does not read by itself.
func (c InitConfig) foreign(source string) bool {
	return source != configsource.UserData && strings.TrimPrefix(source, "file://") != c.DropInDir
}

// Sources are those that the agent reads by itself: the user data, and drop-ins if there are any.
func Sources() []string {
	if !exists(DropInDir) {
		return []string{configsource.UserData}
	}
	return []string{configsource.UserData, "file://" + DropInDir}
}

// WriteFiles writes the files of this very machine, for [InitConfig].
func WriteFiles(spec nodeconfig.Spec, instance render.Instance, layout render.Layout, say func(string)) error {
	facts, err := readFacts()
	if err != nil {
		return err
	}
	files, err := render.Files(spec, instance, facts, layout)
	if err != nil {
		return err
	}
	name, own := render.NodeName(spec, instance), machineCredential()
	if err := own.disown(name, time.Now(), say); err != nil {
		return err
	}
	return write(files, own.joined(name, time.Now()), say)
}
