// SPDX-License-Identifier: Apache-2.0

//go:build !soak

package stories

const (
	// killedRounds is how often the service is killed while clusters are made and deleted: enough here to see each step
	// of both cut short somewhere; `make soak` has the hundred.
	killedRounds = 12
	// awsKilledRounds is how often it is killed between a request of the AWS APIs and its effect, when -awsrounds does
	// not say.
	awsKilledRounds = 10
	// volumeRounds is how often something is killed that a volume depends on while a pod writes to it, and
	// machineRounds how often the pod's machine is deleted.
	volumeRounds  = 6
	machineRounds = 1
	// busyMachines is how many healthy machines are busy while their monitors are listened to, and busyMinutes for how
	// many minutes, when -busyminutes does not say.
	busyMachines = 2
	busyMinutes  = 3
)
