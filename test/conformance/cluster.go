// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	// nodes of the cluster: specs of networks skip themselves where there is one only.
	nodes = 2
	// issuerHost is the host in the URL of service account tokens. Pods reach it whatever else runs on this host, whose own
	// name leads to one account of Muster at a time.
	issuerHost = "issuer.conformance.test"
)

// cluster is what `muster up` made in a state directory that nothing else uses.
type cluster struct {
	muster     string // the program
	kubectl    string // that of the cluster's minor
	dir        string // of everything that the cluster keeps
	kubeconfig string
	registries []*exec.Cmd // one runs for each machine until the end
}

// startCluster starts one of a minor of Kubernetes. It returns the cluster on failure, too, as soon as there is something to be taken down.
func startCluster(ctx context.Context, bin, minor string, nodes int) (*cluster, error) {
	dir, err := os.MkdirTemp("", "mc-") // the paths of sockets in it must be short
	if err != nil {
		return nil, err
	}
	c := &cluster{
		muster: filepath.Join(bin, "muster"), kubectl: filepath.Join(bin, minor, "kubectl"),
		dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig"),
	}
	fmt.Fprintf(os.Stderr, "starting a cluster of Kubernetes %s with %d nodes in %s\n", minor, nodes, c.state())
	cmd := c.command(ctx, "up", "--version", minor, "--nodes", strconv.Itoa(nodes), "--issuer-host", issuerHost, "--kubeconfig", c.kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		return c, fmt.Errorf("starting a cluster: %w: %s", err, lastLine(out))
	}
	return c, nil
}

func (c *cluster) state() string { return filepath.Join(c.dir, "state") }

// command prepares a call of muster. It is in a process group of its own: Ctrl-C ends it once, by way of ctx.
func (c *cluster) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := interruptible(ctx, c.muster, args...)
	cmd.Env = append(os.Environ(), "MUSTER_STATE_DIR="+c.state(), "KUBECONFIG="+c.kubeconfig, "HOME="+c.dir)
	return cmd
}

// load puts images into every machine, and has every machine pull from itself.
func (c *cluster) load(ctx context.Context, archive string, index []byte) error {
	out, err := c.command(ctx, "get", "machines", "-o", "name").Output()
	if err != nil {
		return fmt.Errorf("listing machines: %w", err)
	}
	machines := strings.Fields(string(out))
	if len(machines) == 0 {
		return errors.New("the cluster has no machines")
	}
	for _, machine := range machines {
		machine = machine[strings.LastIndex(machine, "/")+1:]
		fmt.Fprintf(os.Stderr, "loading images into %s\n", machine)
		if err := c.prepare(ctx, machine, archive, index); err != nil {
			return fmt.Errorf("loading images into %s: %w", machine, err)
		}
	}
	return nil
}

// prepare loads images into a machine and starts its registry. Pinned, images are not what the kubelet removes when the
// disk is full.
func (c *cluster) prepare(ctx context.Context, machine, archive string, index []byte) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	const program, hosts = "/run/conformance-registry", "/etc/containerd/certs.d/" + registryName
	if err := errors.Join(
		c.pipe(ctx, archive, machine, "ctr", "-n", "k8s.io", "images", "import", "--label", "io.cri-containerd.pinned=pinned", "-"),
		c.pipe(ctx, self, machine, "sh", "-c", "cat >"+program+" && chmod 755 "+program),
		c.pipe(ctx, os.DevNull, machine, "sh", "-c", "mkdir -p "+hosts+" && printf %s '"+registryHosts+"' >"+hosts+"/hosts.toml"),
	); err != nil {
		return err
	}
	// It is to serve as long as the machine runs, whatever becomes of the run.
	registry := c.command(context.WithoutCancel(ctx), "exec", machine, "--", program, "-registry")
	registry.Stdin = bytes.NewReader(index)
	if err := registry.Start(); err != nil {
		return err
	}
	c.registries = append(c.registries, registry)
	return nil
}

// pipe runs a command on a machine that reads a file of this host.
func (c *cluster) pipe(ctx context.Context, path, machine string, args ...string) error {
	content, err := os.Open(path)
	if err != nil {
		return err
	}
	defer content.Close()
	cmd := c.command(ctx, append([]string{"exec", machine, "--"}, args...)...)
	cmd.Stdin = content
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", args[0], err, lastLine(out))
	}
	return nil
}

// end takes everything down, or says how that is done.
func (c *cluster) end(ctx context.Context, keep bool) error {
	if keep {
		fmt.Fprintf(os.Stderr, "The cluster goes on: export KUBECONFIG=%s; to remove it: %s --state-dir %s down --delete\n",
			c.kubeconfig, c.muster, c.state())
		return nil
	}
	if out, err := c.command(ctx, "down", "--delete").CombinedOutput(); err != nil {
		return fmt.Errorf("taking the cluster in %s down: %w: %s", c.state(), err, lastLine(out))
	}
	for _, registry := range c.registries {
		_ = registry.Wait() // it ended with its machine
	}
	return os.RemoveAll(c.dir)
}
