// SPDX-License-Identifier: Apache-2.0

//go:build soak

package stories

const (
	killedRounds    = 100
	awsKilledRounds = 200
	volumeRounds    = 100
	machineRounds   = 10
	busyMachines    = 20
	busyMinutes     = 30
)
