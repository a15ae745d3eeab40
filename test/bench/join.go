// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/internal/hostnode"
	"muster.dev/muster/internal/vpc"
	"muster.dev/muster/test/host"
)

const (
	joinName    = "bench-host"
	joinAddress = "192.168.64.220"
	joinServer  = "192.168.64.2:443"
)

// benchJoin measures `muster join` on a host on which its owner has installed the programs, from the command line to a Ready node.
func benchJoin(ctx context.Context, bin string, rounds int) error {
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	if _, err := t.muster(ctx, "up", "--nodes", "0"); err != nil {
		return err
	}
	network, err := vpc.New(vpc.Config{Dir: t.state().VPC(), CIDR: netip.MustParsePrefix("192.168.64.0/18")})
	if err != nil {
		return err
	}
	walls := map[string][]time.Duration{}
	for range rounds {
		if err := t.joinOnce(ctx, network, walls); err != nil {
			return err
		}
	}
	w := newTable()
	_, _ = fmt.Fprintln(w, "milliseconds\tmedian\tmin\tmax\tn\t")
	for _, name := range slices.Sorted(maps.Keys(walls)) {
		all := walls[name]
		slices.Sort(all)
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t\n", name[2:], all[len(all)/2].Milliseconds(), all[0].Milliseconds(), all[len(all)-1].Milliseconds(), len(all))
	}
	return w.Flush()
}

func (t trial) joinOnce(ctx context.Context, network *vpc.Network, walls map[string][]time.Duration) (err error) {
	h, err := host.Start(ctx, host.Config{
		Name: joinName, Address: netip.MustParseAddr(joinAddress), Network: network, Bin: t.bin,
		Install: []string{"containerd", "containerd-shim-runc-v2", "ctr", "kube-proxy", "kubelet", "runc"},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }() //nolint:contextcheck // it must be closed, whatever has ended
	pin, err := t.pin()
	if err != nil {
		return err
	}
	token, err := t.muster(ctx, "token", "create", "--node-name", joinName, "--address", joinAddress)
	if err != nil {
		return err
	}
	// A kernel's modules are not a host's to load, and this machine may have no program for that.
	started := time.Now()
	out, err := h.RunWith(ctx, string(token), "sh", "-c", host.BinDir+"/muster join "+joinServer+" --token - --ignore-preflight programs -o json --ca-cert-hash "+pin+" 2>/dev/null")
	if err != nil {
		return err
	}
	took := time.Since(started)
	var report hostnode.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		return fmt.Errorf("reading what muster join printed: %w", err)
	}
	walls["1 muster join: command line to Ready"] = append(walls["1 muster join: command line to Ready"], took)
	walls["2 muster's own part of it"] = append(walls["2 muster's own part of it"], time.Duration(report.OwnSeconds*float64(time.Second)))
	last := map[string]time.Duration{}
	for _, step := range report.Steps {
		last[step.Name] = time.Duration(step.Seconds * float64(time.Second))
	}
	for number, name := range []string{"files", "containerd", "images", "kubelet", "certificate", "node", "ready"} {
		walls[fmt.Sprintf("%d until: %s", number+3, name)] = append(walls[fmt.Sprintf("%d until: %s", number+3, name)], last[name])
	}
	kubectl := exec.CommandContext(ctx, filepath.Join(t.bin, "kubectl"), "delete", "node", joinName)
	kubectl.Env = append(os.Environ(), "KUBECONFIG="+t.state().ClusterKubeconfig())
	if out, err := kubectl.CombinedOutput(); err != nil {
		return fmt.Errorf("deleting the node: %w: %s", err, out)
	}
	return nil
}

// pin is the hash of the public key of the cluster's authority.
func (t trial) pin() (string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", t.state().ClusterKubeconfig())
	if err != nil {
		return "", err
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return "", err
	}
	pins, err := hostnode.PinsOf(config.CAData)
	if err != nil {
		return "", err
	}
	return pins[0], nil
}
