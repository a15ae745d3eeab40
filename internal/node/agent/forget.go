// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"muster.dev/muster/internal/node/nodecerts"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/node/userdata"
	"muster.dev/muster/internal/platform/atomicfile"
)

// initDropIn is what [Init] leaves for the agent, with the token in it.
const initDropIn = "90-init.yaml"

// unnamed is the name of a cluster that was joined by a token without one, which it needs without a token: kubeadm's.
// Nothing on a node depends on it.
const unnamed = "kubernetes"

// forgetToken takes the token out of what Init left, once the machine has a certificate: a used-up secret is of use to
// nobody but a thief, and a new one would come in the user data or by another init. All else stays, so that the machine
// boots as the same node; the findings by the token are written in its place. Done again it changes nothing.
func forgetToken(now told, dir string, settled nodeconfig.Spec) (forgotten bool, err error) {
	path := filepath.Join(dir, initDropIn)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading what init left: %w", err)
	}
	left, err := nodeconfig.Read([]nodeconfig.Source{{Name: path, Content: raw}}, false)
	if err != nil {
		return false, fmt.Errorf("reading what init left: %w", err)
	}
	if left.Spec.Join.Token == "" {
		return false, nil
	}
	spec := left.Spec
	spec.Join.Token = ""
	good, err := suffices(now, path, spec)
	if err != nil {
		return false, err
	}
	if !good {
		spec.Cluster.APIServerEndpoint, spec.Cluster.CertificateAuthority = settled.Cluster.APIServerEndpoint, settled.Cluster.CertificateAuthority
		spec.Join.CACertHashes = nil // they have done their work
		if spec.Cluster.Name == "" {
			spec.Cluster.Name = unnamed
		}
	}
	content, err := nodeconfig.Marshal(spec)
	if err != nil {
		return false, err
	}
	return true, atomicfile.Write(path, content, 0o600)
}

// suffices reports whether a machine can boot by all its documents if one of them is this.
func suffices(now told, path string, spec nodeconfig.Spec) (bool, error) {
	content, err := nodeconfig.Marshal(spec)
	if err != nil {
		return false, err
	}
	parts, err := userdata.Read(now.userData)
	if err != nil {
		return false, err
	}
	documents, _ := userdata.NodeConfigs(parts)
	for _, d := range now.dropIns {
		if d.Name != path {
			documents = append(documents, d)
		}
	}
	merged, err := nodeconfig.Read(append(documents, nodeconfig.Source{Name: path, Content: content}), false)
	return err == nil && len(merged.Spec.Validate()) == 0, nil
}

// forget does so on a machine, and has the agent know what it is told from then on.
func (a *agent) forget(ctx context.Context) {
	now, err := a.ask(ctx)
	if err == nil {
		var forgotten bool
		forgotten, err = forgetToken(now, a.config.DropInDir, a.current())
		if forgotten && err == nil {
			a.log.Info("the bootstrap token is of no more use, and is removed", "file", filepath.Join(a.config.DropInDir, initDropIn))
			if now, err = a.ask(ctx); err == nil {
				a.setHeard(now)
			}
		}
	}
	if err != nil && ctx.Err() == nil {
		a.log.Error("cannot remove the bootstrap token from what init left", "error", err)
	}
}

// ForgetBootstrap removes the bootstrap kubeconfig of a host once its kubelet has a certificate. A kubelet that has not
// got one until the context ends needs it still; that is not an error, and is told.
func ForgetBootstrap(ctx context.Context) (forgotten bool, err error) {
	return machineCredential().forgetBootstrap(ctx, render.PathBootstrapKubeconfig)
}

func (c credential) forgetBootstrap(ctx context.Context, path string) (bool, error) {
	holds := func() bool { // whose it must be was seen to when files were written
		now := time.Now()
		return c.joined(nodecerts.Read(c.dir, now)[0].NodeName(), now)
	}
	if !exists(path) && !holds() { // it goes on with what it had
		return true, nil
	}
	if !poll(ctx, 100*time.Millisecond, holds) {
		return false, nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("removing the bootstrap token: %w", err)
	}
	return true, c.forgetOthers()
}
