// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
)

// ErrNotFound says that there is no instance with that id.
var ErrNotFound = errors.New("no such machine")

// ErrDamaged says that the record of a machine is damaged. Nobody knows which address and ids that machine has, so no
// new machine gets any until it is terminated; all others go on.
var ErrDamaged = errors.New("damaged machine record")

// ErrSubnetFull says that a subnet has not the addresses that are asked for.
var ErrSubnetFull = errors.New("the subnet has too few free addresses")

// ErrPodsFull is the [ErrSubnetFull] of a subnet that has no range for the pods that are asked for.
var ErrPodsFull = fmt.Errorf("allocating addresses of pods: %w", ErrSubnetFull)

// ErrDiskReserve says that an instance was stopped because its disk had taken room that the host needs, and is not
// booted before there is room again.
var ErrDiskReserve = errors.New("the host's disk has less room left than it needs itself")

// State is what an instance is doing.
type State string

// The states of an instance.
const (
	// Pending has its address and is being booted.
	Pending State = "Pending"
	// Running has booted.
	Running State = "Running"
	// Stopped has a disk and an address but no process; launching it again boots it from that disk.
	Stopped State = "Stopped"
)

// LaunchRequest asks for an instance.
type LaunchRequest struct {
	// ID is "i-" and 17 hexadecimal digits.
	ID string `json:"id"`
	// UserData is what the instance is told when it asks. It may hold a token.
	UserData []byte `json:"userData,omitempty"`
	// Type is the instance type that the instance says it is, DefaultType if empty. It keeps the one of its first
	// launch.
	Type string `json:"type,omitempty"`
	// DiskSize is the size of a new instance's disk in GiB, DefaultDiskSize if 0. The disk keeps the size of the first launch.
	DiskSize int `json:"diskSize,omitempty"`
	// HopLimit is how many hops answers of the metadata service may take, 1 if 0: 1 reaches the instance, 2 the pods on
	// it.
	HopLimit int `json:"hopLimit,omitempty"`
	// NamePrefix begins the private DNS name of a new instance; empty but for machines of Fargate.
	NamePrefix string `json:"namePrefix,omitempty"`
	// Avoid are addresses that a new instance does not get, since Nodes still have their names.
	Avoid []netip.Addr `json:"avoid,omitempty"`
	// SubnetID is the subnet that a new instance gets an address in; empty for the first one that has an address left.
	// It stays in it.
	SubnetID string `json:"subnetID,omitempty"`
	// Cluster is the name of the cluster that a new instance is for: only the API server of that one is let to it.
	Cluster string `json:"cluster,omitempty"`
	// ImageID is the image that the instance says it was launched from; it keeps the one of its first launch. Empty
	// says nothing.
	ImageID string `json:"imageID,omitempty"`
	// Key is the key pair whose owner may log in to a new instance; it keeps the one of its first launch.
	Key Key `json:"key,omitzero"`
	// Scaled reports whether the instance is of an Auto Scaling group.
	Scaled bool `json:"scaled,omitempty"`
	// Spot reports whether the instance says that it is a spot instance.
	Spot bool `json:"spot,omitempty"`
	// Lifecycle is the lifecycle state that an instance of an Auto Scaling group is to get to, as the instance hears of it: Warmed:Stopped
	// or Warmed:Running for one of a warm pool, which does not become a node yet; empty for InService. It is replaced in
	// every case, as user data is.
	Lifecycle string `json:"lifecycle,omitempty"`
	// SimulatePods has a new instance that runs no programs take pods, and report them as running. An instance that
	// runs programs takes pods all the same.
	SimulatePods bool `json:"simulatePods,omitempty"`
	// Pods is how many pods a new instance is to have addresses for, in a range of its own of a subnet; 0 if they have
	// none of a subnet.
	Pods int `json:"pods,omitempty"`
	// PodSubnetIDs are the subnets that the range may be of, by zone; empty for the subnet of the instance. See
	// [Demand].
	PodSubnetIDs []string `json:"podSubnetIDs,omitempty"`
	// SecurityGroups are the ids of the security groups that the instance is in from its boot on. An instance that runs
	// already keeps its groups.
	SecurityGroups []string `json:"securityGroups,omitempty"`
	// OwnIDs gives the instance a user namespace, in which its root is nobody on the host. An instance that was
	// launched without a user namespace gets it at its next boot. An instance never loses it.
	OwnIDs bool `json:"ownIDs,omitempty"`
	// HostRoot lets an instance that was launched without a user namespace boot without one where the host has none to
	// give.
	HostRoot bool `json:"hostRoot,omitempty"`
}

// DefaultType is the instance type of an instance that was launched without: no type of EC2's, so nothing is known of
// it.
const DefaultType = "local"

// DefaultDiskSize is the size of an instance's disk in GiB if nobody says otherwise: that of a node's volume on EKS (diskSize of
// CreateNodegroup).
const DefaultDiskSize = ami.RootDiskGiB

// MaxHopLimit is EC2's (HttpPutResponseHopLimit).
const MaxHopLimit = 64

// MaxPods is how many pods an instance can have addresses for: a range of them is in one subnet.
const MaxPods = 1<<16 - notForPods

var typePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$`)

// Instance is a machine as its provider knows it.
type Instance struct {
	ID             string     `json:"id"`
	State          State      `json:"state"`
	PrivateIP      netip.Addr `json:"privateIP"`
	PrivateDNSName string     `json:"privateDNSName"`
	// PodRange is the range of a subnet that its pods have their addresses of; not valid if they have none.
	PodRange netip.Prefix `json:"podRange,omitzero"`
	// Zone is the availability zone that it is in.
	Zone       string    `json:"zone"`
	LaunchTime time.Time `json:"launchTime"`
	// OwnIDs reports whether it has a user namespace, in which its root is nobody on the host.
	OwnIDs bool `json:"ownIDs,omitempty"`
	// DiskSize is the size of its disk in GiB; 0 if that has no bound.
	DiskSize int `json:"diskSize,omitempty"`
	// Lifecycle is that of its last launch; see [LaunchRequest].
	Lifecycle string `json:"lifecycle,omitempty"`
	// NoSSHServer reports that it was launched with a key pair on a host without sshd, so that nobody can log in.
	NoSSHServer bool `json:"noSSHServer,omitempty"`
}

// Provider makes instances and ends them.
type Provider interface {
	// Launch makes sure that the instance exists and runs. A new one gets an address, which is on disk before anything
	// boots; a stopped one boots again from its disk; a running one is left alone. The user data is replaced in every
	// case.
	Launch(ctx context.Context, request LaunchRequest) (Instance, error)
	// Get returns one instance, or ErrNotFound, or ErrDamaged.
	Get(ctx context.Context, id string) (Instance, error)
	// List returns all instances whose records are not damaged, sorted by id.
	List(ctx context.Context) ([]Instance, error)
	// Stop shuts the instance down: its programs are asked to end, and after a while made to. Its disk, addresses and ids
	// stay, and nothing of its memory does; Launch boots it again. An instance that does not run is stopped, and so is one
	// that does not exist.
	Stop(ctx context.Context, id string) error
	// Terminate ends the instance and removes everything that it had. An instance that does not exist is terminated.
	Terminate(ctx context.Context, id string) error
}

// MaxUserData bounds the user data, as EC2 does.
const MaxUserData = 16 << 10

var idPattern = regexp.MustCompile(`^i-[0-9a-f]{17}$`)

// ValidateID checks the form of an instance's id. An id names a directory too.
func ValidateID(id string) error {
	if !idPattern.MatchString(id) {
		return fmt.Errorf("invalid instance id %q: must be i- and 17 hexadecimal digits", id)
	}
	return nil
}

// Validate checks a request.
func (r LaunchRequest) Validate() error {
	if err := ValidateID(r.ID); err != nil {
		return err
	}
	if len(r.UserData) > MaxUserData {
		return fmt.Errorf("user data of %s is %d bytes long: at most %d are allowed", r.ID, len(r.UserData), MaxUserData)
	}
	if r.Type != "" && !typePattern.MatchString(r.Type) {
		return fmt.Errorf("invalid instance type %q for %s: must be like m5.large", r.Type, r.ID)
	}
	if r.Pods < 0 || r.Pods > MaxPods {
		return fmt.Errorf("invalid number of pods %d for %s: addresses are for %d at most", r.Pods, r.ID, MaxPods)
	}
	if r.DiskSize < 0 || r.DiskSize > v1alpha1.MaxDisk {
		return fmt.Errorf("invalid disk size %d GiB for %s: must be from 1 to %d", r.DiskSize, r.ID, v1alpha1.MaxDisk)
	}
	if r.HopLimit < 0 || r.HopLimit > MaxHopLimit {
		return fmt.Errorf("invalid hop limit %d for %s: must be from 1 to %d", r.HopLimit, r.ID, MaxHopLimit)
	}
	if err := r.Key.Validate(); err != nil {
		return fmt.Errorf("key pair of %s: %w", r.ID, err)
	}
	return nil
}
