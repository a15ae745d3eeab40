// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/statedir"
)

// benchManagement starts the management plane twice: as upstream's generic control plane, which is what muster takes,
// and as a whole kube-apiserver with the same flags.
func benchManagement(ctx context.Context, bin string, rounds int) error {
	programs := []string{"generic-apiserver", "kube-apiserver"}
	start, rss := map[string][]time.Duration{}, map[string][]int{}
	for round := range rounds {
		for i := range programs {
			program := programs[(i+round)%len(programs)] // the order is reversed in every other round
			took, kib, err := startManagement(ctx, bin, program)
			if err != nil {
				return fmt.Errorf("starting %s as management plane: %w", program, err)
			}
			start[program] = append(start[program], took)
			rss[program] = append(rss[program], kib)
		}
	}
	w := newTable()
	_, _ = fmt.Fprintln(w, "management plane\tms to ready\tMiB after 5 s\t")
	for _, program := range programs {
		slices.Sort(start[program])
		slices.Sort(rss[program])
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t\n", program, start[program][rounds/2].Milliseconds(), rss[program][rounds/2]/1024)
	}
	a, b := programs[0], programs[1]
	_, _ = fmt.Fprintf(w, "ratio\t%.2f\t%.2f\t\n", float64(start[a][rounds/2])/float64(start[b][rounds/2]), float64(rss[a][rounds/2])/float64(rss[b][rounds/2]))
	return w.Flush()
}

func startManagement(ctx context.Context, bin, program string) (took time.Duration, kib int, err error) {
	path, err := os.MkdirTemp("", "mb-")
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = os.RemoveAll(path) }()
	dir := statedir.Dir(path)
	defer func() {
		// After an interrupt too.
		_, stopErr := supervise.Stop(context.WithoutCancel(ctx), dir, 5*time.Second, func(supervise.Process) bool { return true })
		if err == nil {
			err = stopErr
		}
	}()
	c := component.Account{
		State: dir, BinDir: bin,
		Places:        portplan.AccountPorts{ManagementEtcd: 19079, ManagementEtcdPeer: 19080, Management: 19081, ManagementServer0: 19082}.Places(),
		EncryptionKey: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
	}
	credentials, err := component.AccountCredentials(c)
	if err != nil {
		return 0, 0, err
	}
	if _, err := authority.NewAccountStore(dir.PKI()).Ensure(credentials, time.Now()); err != nil {
		return 0, 0, err
	}
	specs := []component.Spec{component.ManagementSpecs(c)[0], component.ManagementPlane(c).Servers[0]} // etcd and the API server
	specs[1].Path = release.Default().Program(bin, program)
	if program == "kube-apiserver" {
		specs[1].Args = append(specs[1].Args, "--service-cluster-ip-range=10.100.0.0/16")
	}
	supervisor, err := supervise.New(supervise.Config{State: dir, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = supervisor.Apply(ctx, specs)
	}
	if err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	var run sync.WaitGroup
	defer func() { cancel(); run.Wait() }()
	run.Go(func() { supervisor.Run(ctx) })
	err = supervisor.WaitReady(ctx, component.ManagementEtcd)
	started := time.Now()
	if err = errors.Join(err, supervisor.WaitReady(ctx, component.Management)); err != nil {
		return 0, 0, err
	}
	took = time.Since(started)
	select {
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	case <-time.After(5 * time.Second):
	}
	for _, status := range supervisor.Status() {
		if status.Name == component.Management {
			var h held
			h, err = memoryOf(status.PID)
			kib = h.resident
		}
	}
	return took, kib, err
}
