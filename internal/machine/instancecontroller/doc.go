// SPDX-License-Identifier: Apache-2.0

// Package instancecontroller holds the controller of Machines of no cluster: instances that EC2's RunInstances made and
// whose user data names no cluster of the account. It launches them, boots them again when they have stopped, and
// terminates them. Package nodegroup does the same for the Machines of its cluster.
//
// Its status has what the provider assigned. Such a machine is Ready when it runs: nothing waits for a Node.
//
// It also forgets terminated instances, an hour after they were gone (package terminated).
//
// What happens if
//
//	the launch fails                   the reason is in the condition Ready, and it is tried again
//	the service is killed in between   the instance is found by its id, and nothing is launched twice
//	the instance's data is gone        the Machine is deleted: it cannot come back, and nothing replaces it
package instancecontroller
