// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/node/nodeshell"
	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/node/sshserver"
)

// sshPath is where people who log in find programs: those of muster's that take the place of the host's first, also where nothing could be laid
// over /usr/bin.
const sshPath = "/var/lib/muster/names:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:/opt/muster/bin"

// serveSSH lets the owner of the machine's key pair log in, if the machine was launched with one. It does not wait for the machine to become a
// node: whoever wants to know why it does not logs in.
func serveSSH(ctx context.Context, a *agent) {
	public, ok := publicKey(ctx, a)
	if !ok {
		return
	}
	a.shell = true
	if err := prepareShell(a, public); err != nil {
		a.log.Error("nobody can log in to this machine by SSH", "error", err)
		return
	}
	if !sshserver.Installed() {
		a.log.Warn("nobody can log in to this machine by SSH: " + sshserver.Missing) //nolint:sloglint // the package has the one sentence
		return
	}
	go a.keep(ctx, &program{name: "sshd", path: sshserver.Program, args: sshserver.Args, beside: true})
}

// publicKey is that of the key pair that the machine was launched with, as instance metadata has it.
func publicKey(ctx context.Context, a *agent) (public string, ok bool) {
	said := ""
	asked := poll(ctx, pollMetadata, func() bool {
		var err error
		public, err = a.metadata.Metadata(ctx, imds.PublicKeyPath)
		if err != nil && !errors.Is(err, imds.ErrNotFound) {
			if err.Error() != said {
				a.log.Warn("the instance metadata service does not say whether this machine has a key pair; asking again", "error", err)
				said = err.Error()
			}
			return false
		}
		return true
	})
	return public, asked && public != ""
}

// prepareShell makes what somebody who logs in finds: sshd's files, the units of the programs, and what nodes of EKS let everybody read.
func prepareShell(a *agent, public string) error {
	if err := sshserver.Prepare("/", public, sshPath, os.Chown); err != nil {
		return err
	}
	for _, dir := range []string{"/etc/kubernetes", "/var/lib/kubelet", "/var/lib/kubelet/pki"} {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // G302: as on EKS; private keys in it are for root alone
			return fmt.Errorf("showing %s: %w", dir, err)
		}
	}
	if err := WriteFiles(render.ShownUnits(func(name string) string { return programPath(a, name) }), false, func(string) {}); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(render.KubeletConfigAlias), 0o755); err != nil { //nolint:gosec // G301: as on every node
		return fmt.Errorf("naming the kubelet's configuration: %w", err)
	}
	if err := os.Symlink(render.KubeletConfigName, render.KubeletConfigAlias); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("naming the kubelet's configuration: %w", err)
	}
	return nil
}

// showKubeletArgs leaves what the kubelet is started with where people look for it.
func showKubeletArgs(a *agent, args []string) {
	if !a.shell {
		return
	}
	if err := WriteFiles([]render.File{render.ShownKubeletArgs(args)}, false, func(string) {}); err != nil {
		a.log.Warn("the arguments of the kubelet cannot be shown", "error", err)
	}
}

// writeOn is WriteFiles on a machine. Where people log in everybody may read the kubeconfig of a kubelet that joins by its role, as on EKS:
// there is no secret in it.
func writeOn(a *agent) func(files []render.File, joined bool, say func(string)) error {
	return func(files []render.File, joined bool, say func(string)) error {
		for i := range files {
			if a.shell && files[i].Path == render.PathKubeconfig {
				files[i].Mode = 0o644
			}
		}
		return WriteFiles(files, joined, say)
	}
}

// showLog lets the group of the journal read a log of a program, on a machine that people log in to.
func showLog(a *agent, log *os.File) error {
	if !a.shell {
		return nil
	}
	if err := errors.Join(log.Chown(0, nodeshell.JournalID), log.Chmod(0o640)); err != nil {
		return fmt.Errorf("showing a log: %w", err)
	}
	return nil
}
