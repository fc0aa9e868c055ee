# Peaks side by side, stacked by tensor class.
set ylabel 'peak of a rank (GiB)'
set xlabel zp_axis
set xrange [0.4:zp_n_bars + 0.6]
set yrange [0:zp_top]
zp_line = zp_capacity <= zp_top ? zp_capacity : NaN
zp_tilt = zp_longest * zp_n_bars > 90
set xtics scale 0 ()
do for [i = 1:int(zp_n_bars)] { set xtics add (zp_bar[i] i) }
if (zp_tilt) { set xtics rotate by -35; set bmargin (zp_longest > 40 ? 16 : 5 + 0.3 * zp_longest) }
set style fill solid 1.0 border lc rgb 'white'
zp_half = zp_n_bars < 4 ? 0.25 : 0.36
plot $parts using 1:2:($1 - zp_half):($1 + zp_half):2:3:4 with boxxyerror lc rgb variable lw 1 \
         notitle, \
     for [i = 1:int(zp_n)] keyentry with boxes lc rgb zp_color[i] title zp_class[i], \
     $totals using 1:2:3 with labels offset 0, 0.7 tc rgb '#101010' notitle, \
     zp_capacity > 0 ? zp_line : NaN with lines lc rgb '#c00000' lw 2 dt 2 \
         title (zp_capacity > 0 ? zp_capacity_text : '')
