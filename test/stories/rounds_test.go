// SPDX-License-Identifier: Apache-2.0

//go:build !soak

package stories

// killedRounds is how often the service is killed while clusters are made and deleted: enough here to see each step of both cut short
// somewhere; `make soak` has the hundred.
const killedRounds = 12
