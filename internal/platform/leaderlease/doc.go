// SPDX-License-Identifier: Apache-2.0

// Package leaderlease keeps a leader from acting beside the next one. Upstream's elector notices by a clock that a
// lease was lost, and tries for the whole of its deadline to get back what another replica has taken: a leader that was
// stopped or cut off would act on meanwhile.
//
// What happens if
//
//   - the process is stopped, or the machine suspended, for longer than the lease: the Tenure has run out when it runs again, so a fenced
//     client writes nothing, and the first look at the lease ends the leader (Lock)
//   - another replica has taken the lease: the same
//   - the API server is away: nothing is written once the Tenure has run out; it goes on when the lease is renewed in time
//   - a request that was sent in time arrives late: only the resource version in it can tell
package leaderlease
