// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
)

// TestTwoAPIServers has two API servers of a cluster serve at once, changes a flag of both, kills one, and has one serve
// alone again, while the cluster is asked and watched: nothing fails but what the killed one was answering.
//
//story:about plane/planerollout plane/planefront plane/component cluster/serve
func TestTwoAPIServers(t *testing.T) {
	i := newInstallation(t)
	i.muster("up", "--provider", "simulated", "--nodes", "1", "--timeout", "3m")

	p := i.probe()
	i.asks(p, 50)
	i.replicas(2)
	first := i.serve("", 2)
	i.asks(p, 50)
	i.failedNothing(p, "a second API server was added")

	p = i.probe()
	i.asks(p, 50)
	i.eventTTL("20m")
	second := i.serve("20m", 2)
	if slices.Equal(first, second) {
		t.Errorf("%q serve before and after a flag was changed", first)
	}
	i.asks(p, 50)
	i.failedNothing(p, "a flag of two API servers was changed")

	before := i.processes()
	i.kill(second[0])
	p = i.probe() // of which no request is open
	i.eventually("the killed API server is Ready again", func() error {
		if s, err := i.component(second[0]); err != nil || s.State != runner.Ready || s.PID == before[second[0]].PID {
			return fmt.Errorf("%+v, %w", s, err)
		}
		return i.isReady()
	})
	i.asks(p, 50)
	i.failedNothing(p, "an API server started again beside another")
	if now := i.processes()[second[1]]; now.PID != before[second[1]].PID {
		t.Errorf("%s was process %d and is %d", second[1], before[second[1]].PID, now.PID)
	}

	p = i.probe()
	i.asks(p, 50)
	i.replicas(1)
	i.serve("20m", 1)
	i.asks(p, 50)
	i.failedNothing(p, "an API server was taken away")
	if _, err := i.kubectl(managementContext, "-n", "muster", "patch", "cluster", "muster", "--type", "merge", "-p", `{"spec":{"controlPlane":{"replicas":3}}}`); err == nil || !strings.Contains(err.Error(), "less than or equal to 2") {
		t.Errorf("three API servers: %v", err)
	}
	i.eventually("Events tell of the changes", func() error {
		told, err := i.kubectl(managementContext, "-n", "muster", "get", "events", "-o", `jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}`)
		if err == nil && (!strings.Contains(told, "APIServersChanging: ") || !strings.Contains(told, "serve, and the change took ")) {
			err = errors.New(told)
		}
		return err
	})
}

// replicas asks for a number of API servers.
func (i *installation) replicas(n int) {
	i.t.Helper()
	i.mustKubectl(managementContext, "-n", "muster", "patch", "cluster", "muster", "--type", "merge", "-p", fmt.Sprintf(`{"spec":{"controlPlane":{"replicas":%d}}}`, n))
}

// serve waits until a number of API servers run and no more, all of them with an event TTL, and the cluster is Ready so.
// It returns their names.
func (i *installation) serve(ttl string, n int) (names []string) {
	i.t.Helper()
	began := time.Now()
	i.eventually(fmt.Sprintf("%d API servers serve", n), func() error {
		names = nil
		for slot := range component.APIServers {
			s, err := i.component(component.APIServerName(slot))
			if err == nil && s.State != runner.Ready {
				return fmt.Errorf("%+v", s)
			}
			if err == nil {
				names = append(names, s.Name)
			}
		}
		if len(names) != n {
			return fmt.Errorf("%q run", names)
		}
		return i.isReady()
	})
	for _, name := range names {
		if arguments := i.mustCommandLine(name); ttl != "" && !slices.Contains(arguments, "--event-ttl="+ttl+"0s") {
			i.t.Errorf("%s has the arguments %q", name, arguments)
		}
	}
	i.t.Logf("%q serve after %s", names, time.Since(began).Round(100*time.Millisecond))
	return names
}

// component is the status of a component of the cluster.
func (i *installation) component(name string) (runner.Status, error) {
	status, err := i.status()
	if err != nil {
		return runner.Status{}, err
	}
	for _, cluster := range status.Clusters {
		for _, s := range cluster.Components {
			if s.Name == name {
				return s, nil
			}
		}
	}
	return runner.Status{}, fmt.Errorf("%s is not a component of the cluster", name)
}

// isReady says why the cluster is not Ready in its present generation.
func (i *installation) isReady() error {
	said, err := i.kubectl(managementContext, "-n", "muster", "get", "cluster", "muster", "-o", `jsonpath={.metadata.generation} {.status.conditions[?(@.type=="Ready")].observedGeneration} {.status.conditions[?(@.type=="Ready")].status}`)
	if fields := strings.Fields(said); err == nil && (len(fields) != 3 || fields[0] != fields[1] || fields[2] != "True") {
		err = errors.New(said)
	}
	return err
}
