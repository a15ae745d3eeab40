// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/durable"
	"muster.dev/muster/internal/host"
	"muster.dev/muster/internal/machine"
	"muster.dev/muster/internal/render"
)

// readFacts finds out what the machine is.
func readFacts() (render.Facts, error) {
	memory, err := host.Memory()
	if err != nil {
		return render.Facts{}, err
	}
	cgroups, err := host.ReadCgroups()
	if err != nil {
		return render.Facts{}, err
	}
	kernel, err := host.Kernel()
	if err != nil {
		return render.Facts{}, err
	}
	resource, err := host.Capable(unix.CAP_SYS_RESOURCE)
	if err != nil {
		return render.Facts{}, err
	}
	return render.Facts{
		CPUs: host.CPUs(), MemoryBytes: memory, CgroupVersion: cgroups.Version(), Kernel: kernel,
		SysResource: resource, OverlayFS: overlays("/var/lib/containerd"),
	}, nil
}

// overlays tries whether a directory's file system can be the upper layer of an overlay: another overlay, or NFS, cannot.
func overlays(dir string) bool {
	base, err := os.MkdirTemp(dir, ".overlay-")
	if err != nil {
		return false
	}
	defer func() { _ = os.RemoveAll(base) }()
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(base, name), 0o700); err != nil {
			return false
		}
	}
	options := fmt.Sprintf("lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work", base, base, base)
	merged := filepath.Join(base, "merged")
	if err := unix.Mount("overlay", merged, "overlay", 0, options); err != nil {
		return false
	}
	return unix.Unmount(merged, 0) == nil
}

func (a *agent) userDataPath() string { return filepath.Join(a.config.SeedDir, machine.UserDataFile) }

// render reads the user data and writes the files that follow from it; those that are right already are left alone.
func (a *agent) render() (render.NodeConfig, error) {
	userData, err := os.ReadFile(a.userDataPath())
	if err != nil {
		return render.NodeConfig{}, fmt.Errorf("reading user data: %w", err)
	}
	config, err := render.ParseNodeConfig(userData)
	if err != nil {
		return render.NodeConfig{}, err
	}
	files, err := render.Files(config, a.instance, a.facts)
	if err != nil {
		return render.NodeConfig{}, err
	}
	for _, file := range files {
		if file.Path == render.PathBootstrapKubeconfig && joined(time.Now()) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file.Path), 0o755); err != nil { //nolint:gosec // G301: as on every node
			return render.NodeConfig{}, fmt.Errorf("making directory: %w", err)
		}
		if err := durable.Write(file.Path, file.Content, file.Mode); err != nil {
			return render.NodeConfig{}, err
		}
	}
	return config, nil
}

// clientCertificate is where the kubelet keeps its certificate and key.
const clientCertificate = "/var/lib/kubelet/pki/kubelet-client-current.pem"

// joined tells whether the kubelet has a certificate that is still good, so that it needs no token.
func joined(now time.Time) bool {
	if !exists(render.PathKubeconfig) {
		return false
	}
	raw, err := os.ReadFile(clientCertificate)
	if err != nil {
		return false
	}
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		return err == nil && now.Before(certificate.NotAfter)
	}
	return false
}

// joins waits until the kubelet has joined, and then removes the token: it is of no more use to anybody here.
func (a *agent) joins(ctx context.Context) bool {
	if !poll(ctx, 20*time.Millisecond, func() bool { return joined(time.Now()) }) {
		return false
	}
	a.log.Info("kubelet has its certificate")
	if err := os.Remove(render.PathBootstrapKubeconfig); err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.log.Error("cannot remove bootstrap token", "error", err)
	}
	return true
}

// userDataChanges waits until there is other user data.
func (a *agent) userDataChanges(ctx context.Context) bool {
	before, _ := os.ReadFile(a.userDataPath())
	return poll(ctx, time.Second, func() bool {
		after, err := os.ReadFile(a.userDataPath())
		return err == nil && !bytes.Equal(before, after)
	})
}

// watchUserData brings a fresh token to a kubelet that has not joined yet. It looks rather than be told: inotify instances
// are few on most hosts (fs.inotify.max_user_instances), and the kubelets need them.
func (a *agent) watchUserData(ctx context.Context) {
	for a.userDataChanges(ctx) {
		if joined(time.Now()) {
			continue
		}
		if _, err := a.render(); err != nil {
			a.log.Error("new user data cannot be used", "error", err)
			continue
		}
		a.log.Info("new user data; kubelet starts again")
		select {
		case a.kubelet.restart <- struct{}{}:
		default: // it is about to
		}
	}
}

// startAnyway is how long the kubelet's start is put off while the API server does not answer. After that its own log
// should say why it does not.
const startAnyway = 15 * time.Second

// apiServerAnswers waits for the API server, since a kubelet that finds none tries again only after two seconds
// (pkg/kubelet/certificate/bootstrap, waitForServer). Its answer itself does not matter.
func (a *agent) apiServerAnswers(ctx context.Context, config render.NodeConfig) bool {
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(config.Cluster.CertificateAuthority)
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12},
	}}
	waiting, cancel := context.WithTimeout(ctx, startAnyway)
	defer cancel()
	var last error
	answered := poll(waiting, 100*time.Millisecond, func() bool {
		request, err := http.NewRequestWithContext(waiting, http.MethodGet, config.Cluster.APIServerEndpoint+"/healthz", http.NoBody)
		if err != nil {
			last = err
			return false
		}
		response, err := client.Do(request)
		if err != nil {
			last = err
			return false
		}
		_ = response.Body.Close()
		return slices.Contains([]int{http.StatusOK, http.StatusUnauthorized, http.StatusForbidden}, response.StatusCode)
	})
	if answered {
		a.log.Info("API server answers", "endpoint", config.Cluster.APIServerEndpoint)
	} else if ctx.Err() == nil {
		a.log.Warn("API server does not answer", "endpoint", config.Cluster.APIServerEndpoint, "error", last)
	}
	return ctx.Err() == nil
}
