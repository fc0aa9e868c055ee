zp_n_phases = 2
array zp_phase[2] = ['forward', 'backward']
array zp_phase_start[2] = [2, 6]
array zp_phase_end[2] = [5, 8]
zp_n = 4.0
array zp_class[4] = ['parameter', 'momentum', 'activation', 'gathered parameter']
array zp_color[4] = ['#0072b2', '#cc79a7', '#f0e442', '#e69f00']
zp_title = 'first: memory of a rank by tensor class'
zp_below = 'time (ms)   -   fits; with 90 % it needs 0 to 0 GiB and a step takes 0 ps to 0 ps'
zp_end = 8.0
zp_capacity = 0.651925802
zp_capacity_text = 'capacity 0.65 GiB'
zp_top = 0.730156898
zp_peak_x = 3.0
zp_peak_y = 0.540167093
zp_peak = 'peak 0.54 GiB at 3.000 ms, forward of block.1'
$memory << EOD
0 0.0465661287 0.139698386 0.139698386 0.139698386 
0 0.0465661287 0.139698386 0.139698386 0.325962901 
2 0.0465661287 0.139698386 0.167638063 0.353902578 
3 0.0465661287 0.139698386 0.167638063 0.540167093 
5 0.0465661287 0.139698386 0.167638063 0.353902578 
8 0.0465661287 0.139698386 0.167638063 0.167638063 
8 0.0465661287 0.139698386 0.139698386 0.139698386 
8 0.0465661287 0.139698386 0.139698386 0.139698386 
EOD
# Shared by all plots.
set border 3 lc rgb '#404040'
set tics nomirror out tc rgb '#404040'
set grid ytics lc rgb '#e4e4e4' lw 1
set key outside right top reverse Left samplen 2.6 spacing 1.15 tc rgb '#202020'
set title zp_title font ',20' tc rgb '#101010'
set lmargin 11
set bmargin 4.5
set style fill solid 1.0 noborder
set style textbox opaque noborder margins 0.6, 0.4
# Memory of a rank over time, stacked by tensor class.
set xlabel zp_below
set ylabel 'allocated memory (GiB)'
set xrange [0:zp_end]
set yrange [0:zp_top]
set tmargin 5
set title offset 0, 1
do for [i = 1:zp_n_phases] {
    # Where phases are too short to be told apart, their borders would be a fence over the picture.
    if (i > 1 && (zp_phase_end[i] - zp_phase_start[i] > 0.015 * zp_end || \
                  zp_phase_end[i - 1] - zp_phase_start[i - 1] > 0.015 * zp_end)) {
        set arrow from zp_phase_start[i], graph 0 to zp_phase_start[i], graph 1.02 nohead \
            lc rgb '#808080' lw 0.8 dt 3 front
    }
    if (zp_phase_end[i] - zp_phase_start[i] > 0.07 * zp_end) {
        set label zp_phase[i] at (zp_phase_start[i] + zp_phase_end[i]) / 2, graph 1.035 center \
            tc rgb '#606060'
    }
}
zp_right = zp_peak_x > 0.5 * zp_end
if (zp_right) {
    set label zp_peak at zp_peak_x, zp_peak_y right offset -1, 0.9 front boxed tc rgb '#101010'
} else {
    set label zp_peak at zp_peak_x, zp_peak_y left offset 1, 0.9 front boxed tc rgb '#101010'
}
zp_line = zp_capacity <= zp_top ? zp_capacity : NaN
plot for [i = int(zp_n):1:-1] $memory using 1:(column(i + 1)) with fillsteps lc rgb zp_color[i] \
         title zp_class[i], \
     for [i = int(zp_n):1:-1] $memory using 1:(column(i + 1)) with steps lc rgb 'white' lw 0.6 notitle, \
     zp_capacity > 0 ? zp_line : NaN with lines lc rgb '#c00000' lw 2 dt 2 \
         title (zp_capacity > 0 ? zp_capacity_text : ''), \
     '+' using (zp_peak_x):(zp_peak_y) every ::0::0 with points pt 7 ps 1.3 lc rgb '#101010' \
         title 'peak'
