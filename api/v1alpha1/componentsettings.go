// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The ranges of settings of control planes: those of EKS since 2026-08-11, as its DescribeClusterVersions tells them for
// every minor (user guide, "Configure advanced Kubernetes control plane parameters"). EKS gives the two of the
// controller manager to provisioned control planes alone; here every cluster has them.
const (
	MinEventTTL               = "10m"
	MaxEventTTL               = "60m"
	MinNodePort               = 10260
	MaxNodePort               = 32767
	DefaultMinNodePort        = 30000
	DefaultMaxNodePort        = 32767
	MinAutoscalerPeriod       = "10s"
	MaxAutoscalerPeriod       = "15s"
	MinTerminatedPods   int32 = 10000
	MaxTerminatedPods   int32 = 12500
	MinResourceWeight   int32 = 1
	MaxResourceWeight   int32 = 100
)

// MaxLogLevel is the highest verbosity of a component's log. From 7 on client-go logs headers of requests, and from 8 on
// their bodies, which have Secrets.
const MaxLogLevel = 6

// maxFeatureGates is how many feature gates a cluster may set.
const maxFeatureGates = 64

var featureGatePattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// APIServerSettings are settings of kube-apiserver that take effect without a failed call: an API server with them takes
// the place of the one before.
type APIServerSettings struct {
	// EventTTL is how long new Events are kept, from 10m to 60m as on EKS. Defaults to 60m.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10m') && duration(self) <= duration('60m')",message="must be from 10m to 60m"
	EventTTL *metav1.Duration `json:"eventTTL,omitempty"`

	// ServiceNodePortRange is the range of the node ports of Services. A Service that has a node port outside of it keeps the cluster from
	// the range. Defaults to 30000 to 32767.
	//
	// +optional
	ServiceNodePortRange *NodePortRange `json:"serviceNodePortRange,omitempty"`

	// LogLevel is the verbosity of the log, from 0 to 6. Defaults to 1.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=6
	LogLevel *int32 `json:"logLevel,omitempty"`
}

// NodePortRange is a range of ports, both ends among them.
//
// +kubebuilder:validation:XValidation:rule="self.minPort <= self.maxPort",message="minPort must not be above maxPort",fieldPath=".minPort"
type NodePortRange struct {
	// MinPort is the first port, from 10260 to 32767 as on EKS.
	//
	// +kubebuilder:validation:Minimum=10260
	// +kubebuilder:validation:Maximum=32767
	MinPort int32 `json:"minPort"`

	// MaxPort is the last port, from 10260 to 32767 as on EKS.
	//
	// +kubebuilder:validation:Minimum=10260
	// +kubebuilder:validation:Maximum=32767
	MaxPort int32 `json:"maxPort"`
}

// ControllerManagerSettings are settings of kube-controller-manager, which is started again with them.
type ControllerManagerSettings struct {
	// HorizontalPodAutoscalerSyncPeriod is the time between two looks at the horizontal pod autoscalers, from 10s to 15s as on EKS.
	// Defaults to 15s.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s') && duration(self) <= duration('15s')",message="must be from 10s to 15s"
	HorizontalPodAutoscalerSyncPeriod *metav1.Duration `json:"horizontalPodAutoscalerSyncPeriod,omitempty"`

	// TerminatedPodGCThreshold is the number of terminated pods above which the oldest are deleted, from 10000 to 12500 as on EKS.
	// Defaults to 12500.
	//
	// +optional
	// +kubebuilder:validation:Minimum=10000
	// +kubebuilder:validation:Maximum=12500
	TerminatedPodGCThreshold *int32 `json:"terminatedPodGCThreshold,omitempty"`

	// LogLevel is the verbosity of the log, from 0 to 6. Defaults to 1.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=6
	LogLevel *int32 `json:"logLevel,omitempty"`
}

// SchedulerSettings are settings of kube-scheduler, which is started again with them.
type SchedulerSettings struct {
	// ScoringStrategy ranks the nodes that a pod fits on.
	//
	// +optional
	ScoringStrategy *ScoringStrategy `json:"scoringStrategy,omitempty"`

	// LogLevel is the verbosity of the log, from 0 to 6. Defaults to 1.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=6
	LogLevel *int32 `json:"logLevel,omitempty"`
}

// ScoringStrategyType says whether nodes with much or with little room are preferred.
//
// +kubebuilder:validation:Enum=LeastAllocated;MostAllocated
type ScoringStrategyType string

// The types.
const (
	LeastAllocated ScoringStrategyType = "LeastAllocated" // spreads pods over nodes
	MostAllocated  ScoringStrategyType = "MostAllocated"  // packs pods onto few nodes
)

// ScoringStrategyTypes lists the types.
func ScoringStrategyTypes() []ScoringStrategyType {
	return []ScoringStrategyType{LeastAllocated, MostAllocated}
}

// ScoringResources lists the resources that a scoring strategy may weigh: EKS's.
func ScoringResources() []string {
	return []string{"cpu", "memory", "nvidia.com/gpu", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore"}
}

// DefaultScoringResources are those that are weighed where a strategy names none.
func DefaultScoringResources() []ResourceWeight { return []ResourceWeight{{"cpu", 1}, {"memory", 1}} }

// ScoringStrategy is the strategy of the plugin NodeResourcesFit.
type ScoringStrategy struct {
	// Type defaults to LeastAllocated.
	//
	// +optional
	Type ScoringStrategyType `json:"type,omitempty"`

	// Resources are weighed. Defaults to cpu and memory with the weight 1.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=5
	Resources []ResourceWeight `json:"resources,omitempty"`
}

// ResourceWeight is the weight of a resource.
type ResourceWeight struct {
	// Name is one of EKS's: cpu, memory, nvidia.com/gpu, aws.amazon.com/neuron or aws.amazon.com/neuroncore.
	//
	// +kubebuilder:validation:Enum=cpu;memory;nvidia.com/gpu;aws.amazon.com/neuron;aws.amazon.com/neuroncore
	Name string `json:"name"`

	// Weight is from 1 to 100.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`
}

// FeatureGates are feature gates by their names. All programs of the control plane are given them; kubelets have their
// own.
//
// +kubebuilder:validation:MaxProperties=64
// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[A-Z][A-Za-z0-9]{0,62}$'))",message="a feature gate has a name like InPlacePodVerticalScaling"
type FeatureGates map[string]bool

// UpdateComponents holds new settings of a control plane. Settings that it leaves out are not changed.
type UpdateComponents struct {
	// +optional
	APIServer *APIServerSettings `json:"apiServer,omitempty"`

	// +optional
	ControllerManager *ControllerManagerSettings `json:"controllerManager,omitempty"`

	// +optional
	Scheduler *SchedulerSettings `json:"scheduler,omitempty"`

	// FeatureGates is the complete new list; an empty one takes all back to their defaults.
	//
	// +optional
	FeatureGates *FeatureGates `json:"featureGates,omitempty"`
}

// Change sets in a cluster what the settings have.
func (u UpdateComponents) Change(c *ClusterSpec) {
	if wanted := u.APIServer; wanted != nil {
		set(&c.APIServer.EventTTL, wanted.EventTTL)
		set(&c.APIServer.ServiceNodePortRange, wanted.ServiceNodePortRange)
		set(&c.APIServer.LogLevel, wanted.LogLevel)
	}
	if wanted := u.ControllerManager; wanted != nil {
		set(&c.ControllerManager.HorizontalPodAutoscalerSyncPeriod, wanted.HorizontalPodAutoscalerSyncPeriod)
		set(&c.ControllerManager.TerminatedPodGCThreshold, wanted.TerminatedPodGCThreshold)
		set(&c.ControllerManager.LogLevel, wanted.LogLevel)
	}
	if wanted := u.Scheduler; wanted != nil {
		set(&c.Scheduler.LogLevel, wanted.LogLevel)
		if strategy := wanted.ScoringStrategy; strategy != nil {
			c.Scheduler.ScoringStrategy = strategy.over(c.Scheduler.ScoringStrategy)
		}
	}
	if u.FeatureGates != nil {
		c.FeatureGates = *u.FeatureGates
	}
}

// set replaces a setting if there is another.
func set[T any](is **T, wanted *T) {
	if wanted != nil {
		*is = wanted
	}
}

// over is a strategy with what it leaves out from the one before.
func (s ScoringStrategy) over(before *ScoringStrategy) *ScoringStrategy {
	if before == nil {
		return &s
	}
	if s.Type == "" {
		s.Type = before.Type
	}
	if len(s.Resources) == 0 {
		s.Resources = before.Resources
	}
	return &s
}
