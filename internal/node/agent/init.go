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
	"muster.dev/muster/internal/node/kubeletcheck"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/node/userdata"
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
	// Facts finds out what this machine is; see [ReadFacts].
	Facts func() (render.Facts, error)
	// Check runs the kubelet's own validation; nil where its program is not.
	Check kubeletcheck.Run
	// Write writes the machine's files, see [WriteFiles]; Restart starts or restarts its programs.
	Write   func(files []render.File, joined bool, say func(string)) error
	Restart func(ctx context.Context, layout render.Layout) error
	// Forget removes the bootstrap token when the kubelet has a certificate, and reports whether it has; see
	// [ForgetBootstrap].
	Forget func(ctx context.Context) (bool, error)
	Say    func(string)
}

// Init makes a machine a node, or makes it another, by hand: the agent does so by itself when a machine boots. On a
// machine that has an agent, the documents besides its user data are left to it in a drop-in, and the agent goes on
// from there.
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
	judging := pipeline{say: func(_ step, text string) {
		c.Say("user data failed, and its NodeConfig says to go on nevertheless: " + text)
	}}
	spec, err := judging.judge(found.Documents, c.failed(found, layout))
	if err != nil {
		return err
	}
	if !layout.Systemd && slices.ContainsFunc(c.Sources, c.foreign) {
		if problems := spec.Validate(); len(problems) > 0 {
			return fmt.Errorf("NodeConfig: %w", problems.ToAggregate())
		}
		raw, err := nodeconfig.Marshal(spec)
		if err != nil {
			return err
		}
		path := filepath.Join(c.DropInDir, initDropIn)
		if err := os.MkdirAll(c.DropInDir, 0o755); err != nil { //nolint:gosec // G301: as on EKS; secrets in there are closed
			return fmt.Errorf("making directory %s: %w", c.DropInDir, err)
		}
		c.Say("the agent of this machine will read it from " + path)
		return atomicfile.Write(path, raw, 0o600)
	}
	identity, err := client.Identity(ctx)
	if err != nil {
		return fmt.Errorf("%w; a host that has no instance metadata service becomes a node by muster join", err)
	}
	// A machine's kubelet runs as the node that it was booted as; a host's is restarted by systemd with all that is
	// written here.
	p := pipeline{
		credential: c.credential(), metadata: client, layout: layout, self: instance(identity), keepsName: !layout.Systemd,
		root: c.Root, facts: c.Facts, check: c.Check, tool: execTool, write: c.Write,
		say: func(_ step, text string) { c.Say(text) },
	}
	if _, err := p.carryOut(ctx, spec); err != nil {
		return err
	}
	c.Say("the files of " + identity.PrivateDNSName + " are written")
	return nil
}

// failed are parts of the sources that failed or that nothing carries out, a line each. On a host with systemd,
// cloud-init carries out those of its types.
func (c InitConfig) failed(found configsource.Found, layout render.Layout) []string {
	failed := slices.Clone(found.Doubts)
	if !layout.Systemd {
		failed = append(failed, userdata.Ignored(found.Parts)...)
	}
	return append(failed, refusedBootstrap(c.DropInDir)...)
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
