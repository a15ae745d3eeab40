// SPDX-License-Identifier: Apache-2.0

// Package power has machines run or not, as their specs say. Both controllers of machines ask it before they launch one:
//
//	spec.powerState  spec.reboots     what is done                                   condition Running   EC2 says
//	Stopped          as before        it is said that the machine is being stopped   False, Stopping     stopping
//	                                  the provider shuts it down                     False, Stopped      stopped
//	Running          as before        the controller launches it, from its disk      True, Starting      pending, running
//	                                  its node is Ready, if it is to have one        True, Running       running
//	Running          another number   the provider shuts it down                     False, Rebooting    running
//	                                  the controller launches it, from its disk      True, Running       running
//
// If the service is killed
//
//	before the status says that the machine is shut down   it is shut down once more, which changes nothing
//	after that                                             it is launched, and not shut down again for the same reboot
//
// A machine that waits in a warm pool of stopped machines counts as one whose powerState is Stopped from when it has booted
// for that ([Stops]).
//
// A machine that dies by itself has nothing to do with this: its controller boots it again.
package power
