// SPDX-License-Identifier: Apache-2.0

// Package componentconfig has EKS's settings of control planes: as requests ask for them, as DescribeCluster tells what a
// cluster has, and as DescribeClusterVersions tells what there may be. It refuses what is out of EKS's ranges, all of it
// at once, by the names that the request has.
package componentconfig

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/plane/nodeports"
)

// The settings of a cluster, as requests and answers have them.
type (
	// Request is what a request asks of the settings. Settings that it leaves out are not changed.
	Request struct {
		KubeAPIServerConfig         *APIServer
		KubeControllerManagerConfig *ControllerManager
		KubeSchedulerConfig         *Scheduler
	}
	// APIServer are the settings of kube-apiserver.
	APIServer struct {
		EventTTL             string     `json:"eventTtl,omitempty"`
		ServiceNodePortRange *PortRange `json:"serviceNodePortRange,omitempty"`
	}
	// PortRange is a range of ports, both ends among them.
	PortRange struct {
		MinPort *int32 `json:"minPort,omitempty"`
		MaxPort *int32 `json:"maxPort,omitempty"`
	}
	// ControllerManager are the settings of kube-controller-manager.
	ControllerManager struct {
		HorizontalPodAutoscalerControllerConfig *Autoscaler `json:"horizontalPodAutoscalerControllerConfig,omitempty"`
		PodGCControllerConfig                   *PodGC      `json:"podGcControllerConfig,omitempty"`
	}
	// Autoscaler are the settings of the controller of horizontal pod autoscalers.
	Autoscaler struct {
		HorizontalPodAutoscalerSyncPeriod string `json:"horizontalPodAutoscalerSyncPeriod,omitempty"`
	}
	// PodGC are the settings of the controller that removes terminated pods.
	PodGC struct {
		TerminatedPodGCThreshold *int32 `json:"terminatedPodGcThreshold,omitempty"`
	}
	// Scheduler are the settings of kube-scheduler.
	Scheduler struct {
		NodeResourcesFit *NodeResourcesFit `json:"nodeResourcesFit,omitempty"`
	}
	// NodeResourcesFit are the settings of the scheduler's plugin of this name.
	NodeResourcesFit struct {
		ScoringStrategy *Strategy `json:"scoringStrategy,omitempty"`
	}
	// Strategy ranks nodes.
	Strategy struct {
		Type      string   `json:"type,omitempty"`
		Resources []Weight `json:"resources,omitempty"`
	}
	// Weight is the weight of a resource.
	Weight struct {
		Name   string `json:"name"`
		Weight *int32 `json:"weight,omitempty"`
	}
)

// Param is what an update says that a request asked of one program.
type Param struct{ Type, Value string }

// Params are what a request asks of each program, as EKS's updates tell it.
func (r Request) Params() ([]Param, error) {
	var all []Param
	for _, of := range []struct {
		asked bool
		kind  string
		value any
	}{
		{r.KubeAPIServerConfig != nil, "KubeApiServerConfig", r.KubeAPIServerConfig},
		{r.KubeControllerManagerConfig != nil, "KubeControllerManagerConfig", r.KubeControllerManagerConfig},
		{r.KubeSchedulerConfig != nil, "KubeSchedulerConfig", r.KubeSchedulerConfig},
	} {
		if !of.asked {
			continue
		}
		text, err := json.Marshal(of.value)
		if err != nil {
			return nil, fmt.Errorf("rendering settings: %w", err)
		}
		all = append(all, Param{of.kind, string(text)})
	}
	return all, nil
}

// Asked reports whether a request asks for a setting.
func (r Request) Asked() bool {
	return r.KubeAPIServerConfig != nil || r.KubeControllerManagerConfig != nil || r.KubeSchedulerConfig != nil
}

// Read returns the settings that a request asks for, or everything that is wrong with them.
func (r Request) Read() (v1alpha1.UpdateComponents, field.ErrorList) {
	var wanted v1alpha1.UpdateComponents
	var errs field.ErrorList
	if asked := r.KubeAPIServerConfig; asked != nil {
		path := field.NewPath("kubeApiServerConfig")
		ttl, wrong := readDuration(path.Child("eventTtl"), asked.EventTTL, v1alpha1.MinEventTTL, v1alpha1.MaxEventTTL)
		errs = append(errs, wrong...)
		wanted.APIServer = &v1alpha1.APIServerSettings{EventTTL: ttl}
		if ports := asked.ServiceNodePortRange; ports != nil {
			of := v1alpha1.NodePortRange{MinPort: eksresource.Deref(ports.MinPort, 0), MaxPort: eksresource.Deref(ports.MaxPort, 0)}
			errs = append(errs, of.Validate(path.Child("serviceNodePortRange"))...)
			wanted.APIServer.ServiceNodePortRange = &of
		}
	}
	if asked := r.KubeControllerManagerConfig; asked != nil {
		path := field.NewPath("kubeControllerManagerConfig")
		wanted.ControllerManager = &v1alpha1.ControllerManagerSettings{}
		if of := asked.HorizontalPodAutoscalerControllerConfig; of != nil {
			period, wrong := readDuration(path.Child("horizontalPodAutoscalerControllerConfig", "horizontalPodAutoscalerSyncPeriod"), of.HorizontalPodAutoscalerSyncPeriod, v1alpha1.MinAutoscalerPeriod, v1alpha1.MaxAutoscalerPeriod)
			errs = append(errs, wrong...)
			wanted.ControllerManager.HorizontalPodAutoscalerSyncPeriod = period
		}
		if of := asked.PodGCControllerConfig; of != nil && of.TerminatedPodGCThreshold != nil {
			errs = append(errs, v1alpha1.ValidateTerminatedPods(path.Child("podGcControllerConfig", "terminatedPodGcThreshold"), *of.TerminatedPodGCThreshold)...)
			wanted.ControllerManager.TerminatedPodGCThreshold = of.TerminatedPodGCThreshold
		}
	}
	if asked := r.KubeSchedulerConfig; asked != nil {
		wanted.Scheduler = &v1alpha1.SchedulerSettings{}
		if fit := asked.NodeResourcesFit; fit != nil && fit.ScoringStrategy != nil {
			of := fit.ScoringStrategy.read()
			errs = append(errs, of.Validate(field.NewPath("kubeSchedulerConfig", "nodeResourcesFit", "scoringStrategy"))...)
			wanted.Scheduler.ScoringStrategy = &of
		}
	}
	return wanted, errs
}

func (s Strategy) read() v1alpha1.ScoringStrategy {
	of := v1alpha1.ScoringStrategy{Type: v1alpha1.ScoringStrategyType(s.Type)}
	for _, r := range s.Resources {
		of.Resources = append(of.Resources, v1alpha1.ResourceWeight{Name: r.Name, Weight: eksresource.Deref(r.Weight, v1alpha1.MinResourceWeight)})
	}
	return of
}

// durationPattern is what EKS calls a single-unit duration.
var durationPattern = regexp.MustCompile(`^[0-9]{1,9}(s|m|h)$`)

// readDuration reads a duration of one unit, within two others; nil if the text is empty.
func readDuration(path *field.Path, text, least, most string) (*metav1.Duration, field.ErrorList) {
	if text == "" {
		return nil, nil
	}
	refuse := field.ErrorList{field.Invalid(path, text, fmt.Sprintf("must be from %s to %s, with one unit", least, most))}
	read, err := time.ParseDuration(text)
	first, _ := time.ParseDuration(least)
	last, _ := time.ParseDuration(most)
	if err != nil || !durationPattern.MatchString(text) || read < first || read > last {
		return nil, refuse
	}
	return &metav1.Duration{Duration: read}, nil
}

// Show is what a cluster has, defaults included.
func Show(c v1alpha1.ClusterSpec) Request {
	ports := nodeports.RangeOf(c)
	threshold, strategy := eksresource.Deref(c.ControllerManager.TerminatedPodGCThreshold, v1alpha1.MaxTerminatedPods), v1alpha1.ScoringStrategy{}
	if c.Scheduler.ScoringStrategy != nil {
		strategy = *c.Scheduler.ScoringStrategy
	}
	return Request{
		KubeAPIServerConfig: &APIServer{EventTTL: showDuration(c.APIServer.EventTTL, v1alpha1.MaxEventTTL), ServiceNodePortRange: showRange(ports)},
		KubeControllerManagerConfig: &ControllerManager{
			HorizontalPodAutoscalerControllerConfig: &Autoscaler{showDuration(c.ControllerManager.HorizontalPodAutoscalerSyncPeriod, v1alpha1.MaxAutoscalerPeriod)},
			PodGCControllerConfig:                   &PodGC{&threshold},
		},
		KubeSchedulerConfig: &Scheduler{&NodeResourcesFit{showStrategy(strategy)}},
	}
}

func showRange(of v1alpha1.NodePortRange) *PortRange { return &PortRange{&of.MinPort, &of.MaxPort} }

func showStrategy(of v1alpha1.ScoringStrategy) *Strategy {
	shown := &Strategy{Type: string(cmp.Or(of.Type, v1alpha1.LeastAllocated))}
	for _, r := range of.Resources {
		shown.Resources = append(shown.Resources, Weight{r.Name, &r.Weight})
	}
	return shown
}

// showDuration writes a duration with one unit, or the default where there is none.
func showDuration(of *metav1.Duration, otherwise string) string {
	switch {
	case of == nil:
		return otherwise
	case of.Duration%time.Minute == 0:
		return fmt.Sprintf("%dm", of.Duration/time.Minute)
	}
	return fmt.Sprintf("%ds", of.Duration/time.Second)
}

// Wrong is everything that is wrong with settings, in a line.
func Wrong(errs field.ErrorList) string {
	words := make([]string, 0, len(errs))
	for _, err := range errs {
		words = append(words, err.Error())
	}
	slices.Sort(words)
	return strings.Join(slices.Compact(words), "; ")
}
