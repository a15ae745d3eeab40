// SPDX-License-Identifier: Apache-2.0

package logfunction

import (
	"math"

	"muster.dev/muster/internal/aws/logsinsights/logvalue"
)

// earthRadius is the mean radius of the earth in kilometres, by which haversine measures.
const earthRadius = 6371.0

func numbers() map[string]Function {
	return map[string]Function{
		"abs":       numeric(1, 1, func(a []float64) float64 { return math.Abs(a[0]) }),
		"ceil":      numeric(1, 1, func(a []float64) float64 { return math.Ceil(a[0]) }),
		"floor":     numeric(1, 1, func(a []float64) float64 { return math.Floor(a[0]) }),
		"round":     numeric(1, 2, round),
		"greatest":  numeric(1, -1, func(a []float64) float64 { return extreme(a, math.Max) }),
		"least":     numeric(1, -1, func(a []float64) float64 { return extreme(a, math.Min) }),
		"log":       numeric(1, 1, func(a []float64) float64 { return math.Log(a[0]) }),
		"sqrt":      numeric(1, 1, func(a []float64) float64 { return math.Sqrt(a[0]) }),
		"haversine": numeric(4, 4, haversine),
		"toNumber":  numeric(1, 1, func(a []float64) float64 { return a[0] }),
		"toDouble":  numeric(1, 1, func(a []float64) float64 { return a[0] }),
		"toInt":     numeric(1, 1, func(a []float64) float64 { return math.Trunc(a[0]) }),
		"toLong":    numeric(1, 1, func(a []float64) float64 { return math.Trunc(a[0]) }),
	}
}

// numeric makes a function that is Null unless all arguments are numbers.
func numeric(least, most int, compute func(arguments []float64) float64) Function {
	return plain(least, most, func(arguments []logvalue.Value) logvalue.Value {
		numbers := make([]float64, len(arguments))
		for i, argument := range arguments {
			number, ok := argument.Number()
			if !ok {
				return logvalue.Null()
			}
			numbers[i] = number
		}
		return logvalue.Number(compute(numbers))
	})
}

func extreme(numbers []float64, better func(a, b float64) float64) float64 {
	best := numbers[0]
	for _, number := range numbers[1:] {
		best = better(best, number)
	}
	return best
}

// round rounds halves away from zero, to as many decimals as the second argument says, at most 15.
func round(a []float64) float64 {
	if len(a) == 1 || a[1] < 1 {
		return math.Round(a[0])
	}
	unit := math.Pow(10, math.Min(math.Trunc(a[1]), 15))
	return math.Round(a[0]*unit) / unit
}

// haversine returns the distance in kilometres of two points, each a latitude and a longitude in degrees.
func haversine(a []float64) float64 {
	radians := math.Pi / 180
	north, east := math.Sin((a[2]-a[0])*radians/2), math.Sin((a[3]-a[1])*radians/2)
	h := north*north + math.Cos(a[0]*radians)*math.Cos(a[2]*radians)*east*east
	return 2 * earthRadius * math.Asin(math.Sqrt(math.Min(1, h)))
}
