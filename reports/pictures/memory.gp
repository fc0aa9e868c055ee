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
