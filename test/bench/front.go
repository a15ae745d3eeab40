// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/plane/supervise"
)

const (
	// frontConnections are made each way, one after the other and in turns.
	frontConnections = 1000
	// frontLists are lists of frontObjects ConfigMaps of frontObject bytes each way, in turns.
	frontLists, frontObjects, frontObject = 100, 50, 100_000
)

// frontWay is a way to an API server, with what requests took on it.
type frontWay struct {
	name         string
	port         int
	fresh, kept  *http.Client
	single, list []time.Duration
	listed       int64 // bytes
}

// benchFront measures what the front of a control plane costs: requests by new connections and large answers, with the
// front and at the API server behind it in turns, and the front's memory afterwards.
func benchFront(ctx context.Context, bin string) error {
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	if _, err := t.muster(ctx, "up", "--provider", "simulated", "--nodes", "1"); err != nil {
		return err
	}
	text := strings.Repeat("x", frontObject)
	for n := range frontObjects {
		if _, err := t.mustKubectl(ctx, "create", "configmap", "bench-"+strconv.Itoa(n), "--from-literal=text="+text); err != nil {
			return err
		}
	}
	ways, err := t.frontWays()
	if err != nil {
		return err
	}
	for n := range frontConnections + frontLists {
		for _, way := range ways {
			if err := way.ask(ctx, n < frontConnections); err != nil {
				return err
			}
		}
	}
	w := newTable()
	_, _ = fmt.Fprintln(w, "requests by new connections, lists\tp50 ms\tp99 ms\tMB/s\t")
	for _, way := range ways {
		var spent time.Duration
		for _, took := range way.list {
			spent += took
		}
		_, _ = fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.0f\t\n", way.name, ms(quantile(way.single, 50)), ms(quantile(way.single, 99)), float64(way.listed)/1e6/spent.Seconds())
	}
	memory, err := t.memoryOfFront()
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(w, "front, KiB resident, anonymous\t%d\t%d\t\t\n", memory.resident, memory.anonymous)
	return w.Flush()
}

// frontWays are those of the one cluster.
func (t trial) frontWays() ([]*frontWay, error) {
	cluster := t.state().Cluster("muster")
	var ports portplan.Ports
	if err := portplan.Read(cluster.Ports(), &ports); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
	if err != nil {
		return nil, err
	}
	secured, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	ways := []*frontWay{{name: "by the front", port: ports.Published}, {name: "direct", port: ports.APIServer0}}
	for _, way := range ways {
		way.fresh = &http.Client{Transport: &http.Transport{TLSClientConfig: secured.Clone(), DisableKeepAlives: true}}
		way.kept = &http.Client{Transport: &http.Transport{TLSClientConfig: secured.Clone(), ForceAttemptHTTP2: true}}
	}
	return ways, nil
}

// ask asks for a small answer by a new connection, or for a large one by the kept connection.
func (f *frontWay) ask(ctx context.Context, small bool) error {
	client, path := f.kept, "/api/v1/namespaces/default/configmaps"
	if small {
		client, path = f.fresh, "/readyz"
	}
	began := time.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, portplan.OnLoopback(f.port).URL()+path, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	size, err := io.Copy(io.Discard, answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	if took := time.Since(began); small {
		f.single = append(f.single, took)
	} else {
		f.list, f.listed = append(f.list, took), f.listed+size
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// memoryOfFront is what the front of the one cluster holds, in KiB.
func (t trial) memoryOfFront() (held, error) {
	found, err := supervise.Find(t.state())
	if err != nil {
		return held{}, err
	}
	for _, p := range found {
		if filepath.Base(p.Name) == component.Front {
			return memoryOf(p.PID)
		}
	}
	return held{}, errors.New("no front runs")
}
