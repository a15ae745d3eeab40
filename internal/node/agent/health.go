// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/node/bootreport"
	"muster.dev/muster/internal/node/healthprobe"
	"muster.dev/muster/internal/node/nodecerts"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/nodehealth"
	"muster.dev/muster/internal/node/render"
)

const (
	// throughEvery is how many looks there are to one that waits until the disk has what was written.
	throughEvery = 10
	// manyThreads and allThreads, in percent of what the machine may have, are worth an Event, and are why no process can
	// be started.
	manyThreads, allThreads = 70, 90
	// manyZombies are worth an Event (the agent of EKS has the same figure).
	manyZombies = 20
	// threadsLimit holds how many threads the machine may have. A machine has a file of its own there.
	threadsLimit = "/proc/sys/kernel/threads-max"
	// registrationPatience is how long a kubelet may take to register its node before that is reported, and
	// registrationAgain how often the report is made anew.
	registrationPatience, registrationAgain = 5 * time.Minute, 10 * time.Minute
)

// signs are what other parts of the agent notice, for the monitor of the machine's health.
type signs struct {
	kubelet healthprobe.KubeletLog

	mutex   sync.Mutex
	failing map[string]string // programs that end again and again, and how they ended last
}

// fails notes that a program ends again and again.
func (s *signs) fails(program string, how error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.failing == nil {
		s.failing = map[string]string{}
	}
	s.failing[program] = fmt.Sprintf("%s ends again and again: %v", program, how)
}

// runs notes that a program runs well.
func (s *signs) runs(program string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.failing, program)
}

// restarts are the programs that end again and again, as reasons.
func (s *signs) restarts() map[nodehealth.Reason]string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	found := map[nodehealth.Reason]string{}
	for program, reason := range map[string]nodehealth.Reason{
		"containerd": nodehealth.ContainerdRestarts, "kubelet": nodehealth.KubeletRestarts, "kube-proxy": nodehealth.KubeProxyRestarts,
	} {
		if how, fails := s.failing[program]; fails {
			found[reason] = how
		}
	}
	return found
}

// monitor looks at the machine of an agent.
type monitor struct{ *agent }

// run looks at the machine, and writes what it finds into conditions and Events of its Node, by the node's own
// credential, which may write no other Node's.
func (a monitor) run(ctx context.Context) {
	board, events, said := nodehealth.NewBoard(), eventQueue{log: a.log}, ""
	for looks := 0; sleep(ctx, nodehealth.Interval); looks++ {
		now := time.Now()
		for _, e := range board.Look(a.look(looks%throughEvery == 0), now) {
			events.add(event{Reason: string(e.Condition), Text: fmt.Sprintf("%s: %s", e.Reason, e.Message), Warning: true, At: now})
		}
		if due := board.Due(now); due != nil {
			if err := a.tell(ctx, due); err == nil {
				board.Wrote(now)
				said = ""
			} else if text := err.Error(); text != said {
				a.log.Info("the cluster cannot be told of the machine's health; it is tried again", "error", err)
				said = text
			}
		}
		events.flush(ctx, func(ctx context.Context, events []event) error {
			ctx, cancel := context.WithTimeout(ctx, postTime)
			defer cancel()
			config, err := a.connection(ctx)
			if err != nil {
				return err
			}
			return createEvents(ctx, config, a.nodeName(), events)
		})
	}
}

// look looks at the machine once; through has it wait for the disk.
func (a monitor) look(through bool) nodehealth.Look {
	look := nodehealth.Look{Known: []corev1.NodeConditionType{v1alpha1.NodeContainerRuntimeReady}, Found: a.signs.restarts()}
	if address := render.NodeIP(a.current(), a.self()); address.IsValid() {
		if interfaces, err := healthprobe.Interfaces(); err == nil {
			look.Known = append(look.Known, v1alpha1.NodeNetworkingReady)
			maps.Copy(look.Found, healthprobe.Network(interfaces, address))
		}
	}
	if fault, err := healthprobe.Disk(filepath.Join(a.config.DataDir, "health-probe"), through); err == nil {
		look.Known = append(look.Known, v1alpha1.NodeStorageReady)
		if fault != "" {
			look.Found[nodehealth.DiskError] = fault
		}
	}
	forks := a.signs.kubelet.Forks()
	threads, zombies, err := healthprobe.Processes("/proc")
	if err != nil {
		return look
	}
	most, err := healthprobe.Number(threadsLimit)
	if err != nil {
		return look
	}
	look.Known = append(look.Known, v1alpha1.NodeKernelReady)
	maps.Copy(look.Found, processes(threads, zombies, most, forks))
	return look
}

// processes finds what is wrong with the number of a machine's threads and zombies. A program that could not fork is none
// of the machine's business while it has threads left: a pod may have used up its own.
func processes(threads, zombies, most int, forks bool) map[nodehealth.Reason]string {
	found := map[nodehealth.Reason]string{}
	if forks && threads*100 >= most*allThreads {
		found[nodehealth.ForkFailed] = fmt.Sprintf("no process can be started: the machine has %d of %d threads", threads, most)
	}
	if threads*100 >= most*manyThreads {
		found[nodehealth.PIDsRunOut] = fmt.Sprintf("the machine has %d of %d threads", threads, most)
	}
	if zombies >= manyZombies {
		found[nodehealth.ZombiesGather] = fmt.Sprintf("%d processes have ended, and their parents do not ask how", zombies)
	}
	return found
}

// tell writes conditions of the Node. The others that it has stay as they are.
func (a monitor) tell(ctx context.Context, conditions []corev1.NodeCondition) error {
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	config, err := a.connection(ctx)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for the Node: %w", err)
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
	if err != nil {
		return fmt.Errorf("writing conditions of the Node: %w", err)
	}
	if _, err := client.CoreV1().Nodes().PatchStatus(ctx, a.nodeName(), patch); err != nil {
		return fmt.Errorf("writing conditions of the Node: %w", err)
	}
	return nil
}

// nodeName is the name of the machine's Node.
func (a monitor) nodeName() string { return render.NodeName(a.current(), a.self()) }

// connection is a connection to the API server by the node's credential.
func (a monitor) connection(ctx context.Context) (*rest.Config, error) {
	if !nodecerts.ByRole(render.PathKubeconfig) {
		config, _, err := nodecerts.Connection(ctx, render.PathKubeconfig, nodecerts.DefaultDir, time.Now())
		return config, err
	}
	config, err := nodecerts.Endpoint(render.PathKubeconfig)
	if err != nil {
		return nil, err
	}
	_, config.BearerToken, err = nodeCredential(ctx, a.current().Cluster.Name, a.self().Region)
	return config, err
}

// watchRegistration reports a kubelet that does not get its node registered, with its last error.
func (a monitor) watchRegistration(ctx context.Context) {
	begun, reported := time.Now(), time.Time{}
	for sleep(ctx, nodehealth.Interval) {
		registered, failure := a.signs.kubelet.Registered()
		if registered {
			a.over(bootreport.NotRegistered)
			return
		}
		if now := time.Now(); failure != "" && now.Sub(begun) >= registrationPatience && now.Sub(reported) >= registrationAgain {
			reported = now
			a.report(bootreport.NotRegistered, fmt.Sprintf("the kubelet has not registered its node %v after it began; its last error: %s", registrationPatience, nodeconfig.WithoutSecrets(failure)))
		}
	}
}
