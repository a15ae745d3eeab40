// SPDX-License-Identifier: Apache-2.0

package componentconfig

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

// ofServer, ofManager and ofPods are requests for one setting.
func ofServer(s APIServer) Request { return Request{KubeAPIServerConfig: &s} }

func ofManager(period string) Request {
	return Request{KubeControllerManagerConfig: &ControllerManager{HorizontalPodAutoscalerControllerConfig: &Autoscaler{period}}}
}

func ofPods(threshold int32) Request {
	return Request{KubeControllerManagerConfig: &ControllerManager{PodGCControllerConfig: &PodGC{&threshold}}}
}

func ofScheduler(s Strategy) Request {
	return Request{KubeSchedulerConfig: &Scheduler{&NodeResourcesFit{&s}}}
}

func TestRead(t *testing.T) {
	t.Parallel()
	ports := func(least, most int32) Request {
		return ofServer(APIServer{ServiceNodePortRange: &PortRange{&least, &most}})
	}
	const ttl, period = "kubeApiServerConfig.eventTtl: ", "kubeControllerManagerConfig.horizontalPodAutoscalerControllerConfig.horizontalPodAutoscalerSyncPeriod: "
	const threshold, strategy = "kubeControllerManagerConfig.podGcControllerConfig.terminatedPodGcThreshold: ", "kubeSchedulerConfig.nodeResourcesFit.scoringStrategy."
	for name, c := range map[string]struct {
		request Request
		wrong   string
	}{
		"nothing":            {Request{}, ""},
		"the least":          {ofServer(APIServer{EventTTL: "10m"}), ""},
		"the most":           {ofServer(APIServer{EventTTL: "60m"}), ""},
		"in another unit":    {ofServer(APIServer{EventTTL: "1h"}), ""},
		"in seconds":         {ofServer(APIServer{EventTTL: "600s"}), ""},
		"too short":          {ofServer(APIServer{EventTTL: "9m"}), ttl + `Invalid value: "9m": must be from 10m to 60m, with one unit`},
		"too long":           {ofServer(APIServer{EventTTL: "2h"}), ttl + `Invalid value: "2h": must be from 10m to 60m, with one unit`},
		"two units":          {ofServer(APIServer{EventTTL: "10m30s"}), ttl + `Invalid value: "10m30s": must be from 10m to 60m, with one unit`},
		"no unit":            {ofServer(APIServer{EventTTL: "600"}), ttl + `Invalid value: "600": must be from 10m to 60m, with one unit`},
		"ports":              {ports(10260, 32767), ""},
		"a port below":       {ports(10259, 32767), "kubeApiServerConfig.serviceNodePortRange.minPort: Invalid value: 10259: must be from 10260 to 32767"},
		"a port above":       {ports(10260, 32768), "kubeApiServerConfig.serviceNodePortRange.maxPort: Invalid value: 32768: must be from 10260 to 32767"},
		"the wrong way":      {ports(30001, 30000), "kubeApiServerConfig.serviceNodePortRange.minPort: Invalid value: 30001: must not be above maxPort, 30000"},
		"period":             {ofManager("10s"), ""},
		"period, too short":  {ofManager("9s"), period + `Invalid value: "9s": must be from 10s to 15s, with one unit`},
		"period, too long":   {ofManager("16s"), period + `Invalid value: "16s": must be from 10s to 15s, with one unit`},
		"pods":               {ofPods(10000), ""},
		"too few pods":       {ofPods(9999), threshold + "Invalid value: 9999: must be from 10000 to 12500"},
		"too many pods":      {ofPods(12501), threshold + "Invalid value: 12501: must be from 10000 to 12500"},
		"strategy":           {ofScheduler(Strategy{Type: "MostAllocated", Resources: []Weight{{"nvidia.com/gpu", new(int32(100))}}}), ""},
		"no such strategy":   {ofScheduler(Strategy{Type: "RequestedToCapacityRatio"}), strategy + `type: Unsupported value: "RequestedToCapacityRatio": supported values: "LeastAllocated", "MostAllocated"`},
		"a resource twice":   {ofScheduler(Strategy{Resources: []Weight{{"cpu", nil}, {"cpu", nil}}}), strategy + `resources[1]: Duplicate value: "cpu"`},
		"too heavy":          {ofScheduler(Strategy{Resources: []Weight{{"cpu", new(int32(101))}}}), strategy + "resources[0].weight: Invalid value: 101: must be from 1 to 100"},
		"a setting of three": {Request{KubeAPIServerConfig: &APIServer{}, KubeControllerManagerConfig: &ControllerManager{}, KubeSchedulerConfig: &Scheduler{}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, errs := c.request.Read(); Wrong(errs) != c.wrong {
				t.Errorf("%s\nwant %s", Wrong(errs), c.wrong)
			}
		})
	}
}

// A cluster shows afterwards the settings that it was changed to, and those that a request leaves out stay.
func TestShowWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	var c v1alpha1.ClusterSpec
	all := Show(c)
	change := func(r Request) {
		t.Helper()
		wanted, errs := r.Read()
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		wanted.Change(&c)
	}
	change(ofServer(APIServer{EventTTL: "1800s"}))
	all.KubeAPIServerConfig.EventTTL = "30m"
	change(ofServer(APIServer{ServiceNodePortRange: &PortRange{new(int32(20000)), new(int32(25000))}}))
	all.KubeAPIServerConfig.ServiceNodePortRange = &PortRange{new(int32(20000)), new(int32(25000))}
	change(ofManager("12s"))
	all.KubeControllerManagerConfig.HorizontalPodAutoscalerControllerConfig.HorizontalPodAutoscalerSyncPeriod = "12s"
	change(ofPods(11000))
	all.KubeControllerManagerConfig.PodGCControllerConfig.TerminatedPodGCThreshold = new(int32(11000))
	change(ofScheduler(Strategy{Type: "MostAllocated"}))
	change(ofScheduler(Strategy{Resources: []Weight{{"memory", nil}}}))
	all.KubeSchedulerConfig.NodeResourcesFit.ScoringStrategy = &Strategy{Type: "MostAllocated", Resources: []Weight{{"memory", new(int32(1))}}}
	if diff := cmp.Diff(all, Show(c)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	params, err := Show(c).Params()
	want := []Param{
		{"KubeApiServerConfig", `{"eventTtl":"30m","serviceNodePortRange":{"minPort":20000,"maxPort":25000}}`},
		{"KubeControllerManagerConfig", `{"horizontalPodAutoscalerControllerConfig":{"horizontalPodAutoscalerSyncPeriod":"12s"},"podGcControllerConfig":{"terminatedPodGcThreshold":11000}}`},
		{"KubeSchedulerConfig", `{"nodeResourcesFit":{"scoringStrategy":{"type":"MostAllocated","resources":[{"name":"memory","weight":1}]}}}`},
	}
	if diff := cmp.Diff(want, params); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

// A duration that kubectl set in another unit has one unit.
func TestShowDuration(t *testing.T) {
	t.Parallel()
	for of, want := range map[time.Duration]string{time.Hour: "60m", 90 * time.Second: "90s", 15 * time.Second: "15s"} {
		if got := showDuration(&metav1.Duration{Duration: of}, "x"); got != want {
			t.Errorf("%s is %s, want %s", of, got, want)
		}
	}
}
