// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// JoinStep is a step on a machine's way into the cluster.
type JoinStep string

// The steps of a join, in order.
const (
	StepLaunched           JoinStep = "Launched"
	StepAPIReached         JoinStep = "APIReached"
	StepClientCSRCreated   JoinStep = "ClientCSRCreated"
	StepClientCSRApproved  JoinStep = "ClientCSRApproved"
	StepClientCSRIssued    JoinStep = "ClientCSRIssued"
	StepNodeRegistered     JoinStep = "NodeRegistered"
	StepServingCSRCreated  JoinStep = "ServingCSRCreated"
	StepServingCSRApproved JoinStep = "ServingCSRApproved"
	StepServingCSRIssued   JoinStep = "ServingCSRIssued"
	StepReady              JoinStep = "Ready"
)

// JoinSteps lists every step of a join, in order.
func JoinSteps() []JoinStep {
	return []JoinStep{
		StepLaunched, StepAPIReached,
		StepClientCSRCreated, StepClientCSRApproved, StepClientCSRIssued,
		StepNodeRegistered,
		StepServingCSRCreated, StepServingCSRApproved, StepServingCSRIssued,
		StepReady,
	}
}
