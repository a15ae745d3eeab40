// SPDX-License-Identifier: Apache-2.0

// Package scalingplan compares an Auto Scaling group with its instances and returns what to do next, each action with its
// cause in the words of Auto Scaling. It is pure: values in, values out.
//
//	Pending ──► Pending:Wait ──► InService ◄──► Standby
//	   │        (launch hooks)       │
//	   └────────────┬────────────────┘
//	                ▼
//	        Terminating:Wait ──► Terminating ──► forgotten
//	        (termination hooks)
//
// At all times
//   - the instances that count have at most the group's maximum of capacity, also while instances are replaced; while zones
//     are rebalanced one instance more
//   - no instance ends for a smaller size, another zone or a refresh if the group would have less than its minimum
//   - protected instances do not end for a smaller size or another zone
//
// An instance counts from the moment at which it is asked for until its end is decided. Instances that are unhealthy, and
// those that somebody asked to end, end whatever the sizes are.
package scalingplan
