// SPDX-License-Identifier: Apache-2.0

package cause

import "slices"

// Step is a step on the way of a machine into its cluster, from its launch to the renewal of its certificates.
type Step string

// The fifteen steps, in order. The steps of v1alpha1.JoinStep have the same names, and their times are in the Machine's
// status; the others are known to be done when a later one is.
const (
	Launched           Step = "Launched"           // the instance runs, with an address and a name
	Booted             Step = "Booted"             // its user data is read and carried out, and its disk can be written
	Configured         Step = "Configured"         // the configuration of containerd and kubelet is made and valid
	KubeletStarted     Step = "KubeletStarted"     // containerd and kubelet run
	EndpointReached    Step = "EndpointReached"    // the API server answers, and the kubelet trusts its certificate
	APIReached         Step = "APIReached"         // the API server knows the machine by its credential
	ClientCSRCreated   Step = "ClientCSRCreated"   // a client certificate is asked for; not by a machine that joins by role
	ClientCSRApproved  Step = "ClientCSRApproved"  // the certificate controller says yes
	ClientCSRIssued    Step = "ClientCSRIssued"    // the kubelet has its client certificate
	NodeRegistered     Step = "NodeRegistered"     // the Node object is there
	ServingCSRCreated  Step = "ServingCSRCreated"  // a serving certificate is asked for
	ServingCSRApproved Step = "ServingCSRApproved" // the certificate controller says yes
	ServingCSRIssued   Step = "ServingCSRIssued"   // the kubelet has its serving certificate, so that its logs can be read
	Ready              Step = "Ready"              // the Node is Ready, so that it gets pods
	Kept               Step = "Kept"               // it stays Ready: its certificates are renewed, its kubelet reports
)

// Steps returns the fifteen steps in order.
func Steps() []Step {
	return []Step{
		Launched, Booted, Configured, KubeletStarted, EndpointReached, APIReached, ClientCSRCreated, ClientCSRApproved, ClientCSRIssued,
		NodeRegistered, ServingCSRCreated, ServingCSRApproved, ServingCSRIssued, Ready, Kept,
	}
}

// Order is the place of the step, from 1; 0 for a step that is none of the fifteen.
func (s Step) Order() int { return slices.Index(Steps(), s) + 1 }

// OfClient reports whether the step is about a client certificate, which a machine that joins by its role never asks for.
func (s Step) OfClient() bool {
	return s == ClientCSRCreated || s == ClientCSRApproved || s == ClientCSRIssued
}

// Recorded reports whether the step has a time of its own where it was done. It is known of the others when a later one
// is done.
func (s Step) Recorded() bool {
	return !slices.Contains([]Step{Booted, Configured, KubeletStarted, EndpointReached, Kept}, s)
}
