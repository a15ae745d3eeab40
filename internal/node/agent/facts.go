// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/platform/host"
)

// ReadFacts finds out what this machine is, for the files of a node: at a boot, by muster node init, and by muster
// join.
func ReadFacts() (render.Facts, error) {
	memory, err := host.Memory()
	if err != nil {
		return render.Facts{}, err
	}
	pids, err := host.PIDs()
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
	own, err := host.InUserNamespace()
	if err != nil {
		return render.Facts{}, err
	}
	servers, domains, err := resolver(resolvConf)
	if err != nil {
		return render.Facts{}, err
	}
	files, err := host.OpenFiles()
	if err != nil {
		return render.Facts{}, err
	}
	return render.Facts{
		OpenFiles: files,
		CPUs:      host.CPUs(), MemoryBytes: memory, PIDs: pids, CgroupVersion: cgroups.Version(), Kernel: kernel,
		SysResource: resource, UserNamespace: own, OverlayFS: overlays(imageDir), IPTables: hasIPTables(""), Authenticator: authenticator(),
		ResolverConfig: resolverConfig("", servers), NameServers: servers, SearchDomains: domains,
	}, nil
}

const resolvConf = "/etc/resolv.conf"

// resolver reads which name servers are asked and which domains searched. No file is none of both.
func resolver(path string) (servers, domains []string, err error) {
	config, err := dns.ClientConfigFromFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the machine's name servers: %w", err)
	}
	return config.Servers, config.Search, nil
}

// resolverConfig is the file that names the real name servers where systemd-resolved puts its stub in their place
// (systemd-resolved.service(8)); empty where it does not. Root is empty but in tests.
func resolverConfig(root string, servers []string) string {
	const stub, resolved = "127.0.0.53", "/run/systemd/resolve/resolv.conf"
	if slices.Contains(servers, stub) && exists(filepath.Join(root, resolved)) {
		return resolved
	}
	return ""
}

// hasIPTables reports whether this machine has the program iptables. Root is empty but in tests.
func hasIPTables(root string) bool {
	return slices.ContainsFunc(render.ProgramDirectories(), func(dir string) bool { return exists(filepath.Join(root, dir, "iptables")) })
}

// authenticator is where this machine has aws-iam-authenticator.
func authenticator() string {
	if !exists(render.PathAuthenticator) && exists(render.PathAuthenticatorFallback) {
		return render.PathAuthenticatorFallback
	}
	return render.PathAuthenticator
}

// overlays tries whether a directory's file system can be the upper layer of an overlay: another overlay, or NFS,
// cannot. A directory that is not there yet, as on a host that has not joined, is not made for that: the kind of the
// file system that it will be on decides.
func overlays(dir string) bool {
	if !exists(dir) {
		return mayOverlay(filepath.Dir(dir))
	}
	base, err := os.MkdirTemp(dir, overlayTry)
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

// mayOverlay reports whether a directory is on a file system of a kind that can be the upper layer of an overlay.
func mayOverlay(dir string) bool {
	var disk unix.Statfs_t
	return unix.Statfs(dir, &disk) == nil && disk.Type != unix.OVERLAYFS_SUPER_MAGIC && disk.Type != unix.NFS_SUPER_MAGIC
}
