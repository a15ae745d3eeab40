// SPDX-License-Identifier: Apache-2.0

// These tests make real machines: they need root, and the programs that make build builds.

package local

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/userdata"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/loopdevice"
	"muster.dev/muster/internal/platform/statedir"
)

func config(dir statedir.Dir, binDir string) Config {
	return Config{
		State: dir, BinDir: binDir, Subnets: machinetest.Subnets, Region: machinetest.Region(),
		Log: slog.New(slog.DiscardHandler),
	}
}

// site is a state directory and the programs for its machines. What it leaves behind is an error.
type site struct {
	dir    statedir.Dir
	binDir string
}

func newSite(t *testing.T) *site { t.Helper(); return newSiteIn(t, t.TempDir()) }

// newSiteIn makes a site in a directory that is there.
func newSiteIn(t *testing.T, dir string) *site {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes machines out of namespaces, which needs root")
	}
	s := &site{dir: statedir.Dir(dir), binDir: filepath.Join(t.TempDir(), "bin")}
	linkPrograms(t, s.binDir)
	if _, err := authority.NewAccountStore(s.dir.PKI()).Ensure(nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	describe(t, s.dir)
	t.Cleanup(func() {
		p, ctx := s.provider(t), context.WithoutCancel(t.Context())
		for _, id := range []string{machinetest.First, machinetest.Second, "i-0000000000000000c"} {
			if err := p.Terminate(ctx, id); err != nil {
				t.Errorf("Terminate: %v", err)
			}
		}
		for _, id := range []string{machinetest.First, machinetest.Second, "i-0000000000000000c"} {
			s.nothingLeft(t, id)
		}
		if err := vpc.Remove(s.dir.VPC(machinetest.VPCID)); err != nil {
			t.Errorf("removing the VPC: %v", err)
		}
		if left := s.mounts(t); left != "" {
			t.Errorf("mounts are left:\n%s", left)
		}
	})
	return s
}

func (s *site) provider(t *testing.T) *Provider {
	t.Helper()
	p, err := New(config(s.dir, s.binDir))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// nothingLeft checks that a machine that has been terminated has no process, control group, link or file any more.
func (s *site) nothingLeft(t *testing.T, id string) {
	t.Helper()
	running, err := Running(s.dir)
	if err != nil {
		t.Error(err)
	}
	if pid, ok := running[id]; ok {
		t.Errorf("machine %s still has process %d", id, pid)
	}
	groups, err := host.ReadCgroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range groups.Hierarchies {
		if _, err := os.Stat(filepath.Join(h.MountPoint, cgroupName(s.dir, id))); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("machine %s still has a control group in %s: %v", id, h.MountPoint, err)
		}
	}
	if _, err := os.Stat(s.dir.Machine(id)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("machine %s still has files: %v", id, err)
	}
	devices, err := loopdevice.List()
	if err != nil {
		t.Error(err)
	}
	for _, d := range devices {
		if strings.HasPrefix(d.Path, s.dir.Machine(id)) && !d.Detaching { // the kernel takes a moment
			t.Errorf("machine %s still has %s of %s", id, d.Node(), d.Path)
		}
	}
	network, err := vpc.Open(s.dir.VPCs(), machinetest.VPCID)
	if err != nil {
		t.Fatal(err)
	}
	if err := network.Ensure(); err != nil {
		t.Fatal(err)
	}
	if links, err := network.Attached(); err != nil || len(links) > 0 {
		t.Errorf("links left in the VPC: %v, %v", links, err)
	}
}

// mounts lists what is mounted on the host below the site, of which the VPC's namespace is to be the only one.
func (s *site) mounts(t *testing.T) string {
	t.Helper()
	var found strings.Builder
	for line := range strings.Lines(read(t, "/proc/self/mountinfo")) {
		if strings.Contains(line, string(s.dir)+"/") || strings.Contains(line, s.binDir) {
			found.WriteString(line)
		}
	}
	return found.String()
}

// linkPrograms makes a directory of programs like that of make build, with this test as muster.
func linkPrograms(t *testing.T, binDir string) {
	t.Helper()
	built, err := filepath.Abs("../../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(built, "containerd")); err != nil {
		t.Fatalf("this test needs the programs that machines are made of; run make build first: %v", err)
	}
	err = filepath.WalkDir(built, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(built, path)
		if err != nil {
			return err
		}
		target := filepath.Join(binDir, relative)
		switch {
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case relative == "muster" || strings.HasPrefix(entry.Name(), "."):
			return nil
		case entry.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(to, target)
		default:
			return linkOrCopy(path, target)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := linkOrCopy(self, filepath.Join(binDir, "muster")); err != nil {
		t.Fatal(err)
	}
}

func linkOrCopy(from, to string) error {
	if err := os.Link(from, to); err == nil {
		return nil
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o755)
}

// userData is for a cluster that does not answer, with a script before it.
func userData(t *testing.T) []byte {
	t.Helper()
	return userDataFor(t, nodeconfig.Instance{})
}

func userDataFor(t *testing.T, instance nodeconfig.Instance) []byte {
	t.Helper()
	authority, err := os.ReadFile("testdata/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	config, err := nodeconfig.Marshal(nodeconfig.Spec{
		Cluster: nodeconfig.Cluster{
			Name: "test", APIServerEndpoint: "https://192.168.64.2:443", CertificateAuthority: authority,
			CIDR: "10.100.0.0/16", PodCIDR: "10.244.0.0/16", Domain: "cluster.local",
		},
		Instance: instance,
		Join:     nodeconfig.Join{Token: "abcdef.0123456789abcdef"},
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := userdata.Write([]userdata.Part{
		{MediaType: userdata.TypeShellScript, Content: []byte("#!/bin/sh\necho \"ran on $(cat /etc/hostname)\" | tee -a /home/ran\n")},
		{MediaType: nodeconfig.MediaType, Content: config},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// serve runs what the process of the VPC runs, until the function that it returns is called.
func (s *site) serve(t *testing.T) (stop func()) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	network, err := vpc.Open(s.dir.VPCs(), machinetest.VPCID)
	if err != nil {
		t.Fatal(err)
	}
	directory, err := NewDirectory(s.dir, machinetest.VPCID)
	if err != nil {
		t.Fatal(err)
	}
	key, err := MetadataKey(s.dir, machinetest.VPCID)
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := imds.NewServer(imds.ServerConfig{Directory: directory, Key: key, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(s.dir.Run(), 0o700); err != nil {
		t.Fatal(err)
	}
	relay, err := vpc.NewRelay(vpc.RelayConfig{
		Network: network, Machines: directory, Socket: s.dir.VPCSocket(machinetest.VPCID), Metadata: metadata, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("relay: %v", err)
		}
	})
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for: %s: %v", what, err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func maybeRead(path string) string {
	raw, _ := os.ReadFile(path)
	return string(bytes.Clone(raw))
}
